package kube

import (
	"encoding/json"
	"time"
)

// Usage is what a pod uses.
type Usage struct {
	CPU                    time.Duration // since it started
	CPUPercent             float64       // of one core
	MemoryBytes, DiskBytes uint64
}

// UsagesOf reads what a kubelet tells of its pods, by their names; none of what is not a summary.
func UsagesOf(summary []byte) map[string]Usage {
	var s struct {
		Pods []struct {
			PodRef struct{ Name string }
			CPU    struct{ UsageNanoCores, UsageCoreNanoSeconds uint64 }
			Memory struct{ WorkingSetBytes uint64 }
			Disk   struct{ UsedBytes uint64 } `json:"ephemeral-storage"`
		}
	}
	if json.Unmarshal(summary, &s) != nil {
		return nil
	}
	all := map[string]Usage{}
	for _, p := range s.Pods {
		all[p.PodRef.Name] = Usage{CPU: time.Duration(min(p.CPU.UsageCoreNanoSeconds, 1<<62)), CPUPercent: float64(p.CPU.UsageNanoCores) / 1e7, //nolint:gosec // it fits
			MemoryBytes: p.Memory.WorkingSetBytes, DiskBytes: p.Disk.UsedBytes}
	}
	return all
}
