package kube

import (
	"encoding/json"
	"fmt"

	"cupola/runtime/lrp"
)

// recordText is a Record as a pod's annotation has it.
type recordText struct {
	GUID        string            `json:"guid"`
	Kind        lrp.Kind          `json:"kind"`
	Domain      string            `json:"domain"`
	ProcessGUID string            `json:"process_guid,omitempty"`
	Index       int               `json:"index,omitempty"`
	CellID      string            `json:"cell_id"`
	RootFS      string            `json:"root_fs"`
	MemoryMB    int               `json:"memory_mb,omitempty"`
	DiskMB      int               `json:"disk_mb,omitempty"`
	MaxPids     int               `json:"max_pids,omitempty"`
	LogRate     int64             `json:"log_rate"`
	Require     []string          `json:"require,omitempty"`
	EgressGroup string            `json:"egress_group,omitempty"`
	Egress      []lrp.EgressRule  `json:"egress,omitempty"` // without a group
	PolicyGroup string            `json:"policy_group,omitempty"`
	Log         lrp.LogTarget     `json:"log"`
	FilesDigest string            `json:"files_digest,omitempty"`
	Files       map[string]string `json:"files,omitempty"`
	Pulls       bool              `json:"pulls,omitempty"`
	Packed      bool              `json:"packed,omitempty"`
	Sources     map[string]string `json:"sources,omitempty"`
	Result      string            `json:"result,omitempty"`
	Inputs      []string          `json:"inputs,omitempty"`
}

// recorded is c without its secrets, and without what no successor of the daemon needs.
func recorded(c lrp.Container) recordText {
	t := recordText{GUID: c.GUID, Kind: c.Kind, Domain: c.Domain, ProcessGUID: c.ProcessGUID, Index: c.Index, CellID: c.CellID, RootFS: c.RootFS,
		MemoryMB: c.MemoryMB, DiskMB: c.DiskMB, MaxPids: c.MaxPids, LogRate: c.LogRateLimitByte, Require: c.Constraint.Require,
		EgressGroup: c.EgressGroup, PolicyGroup: c.PolicyGroup, Log: c.Log, Result: c.ResultFile}
	if c.EgressGroup == "" {
		t.Egress = c.Egress
	}
	return t
}

func (t recordText) container() lrp.Container {
	return lrp.Container{GUID: t.GUID, Kind: t.Kind, Domain: t.Domain, ProcessGUID: t.ProcessGUID, Index: t.Index, CellID: t.CellID,
		RunInfo: lrp.RunInfo{RootFS: t.RootFS, MemoryMB: t.MemoryMB, DiskMB: t.DiskMB, MaxPids: t.MaxPids, LogRateLimitByte: t.LogRate,
			Constraint: lrp.Constraint{Require: t.Require}, EgressGroup: t.EgressGroup, Egress: t.Egress, PolicyGroup: t.PolicyGroup, Log: t.Log, ResultFile: t.Result}}
}

func (r Record) text() (string, error) {
	t := recorded(r.Container)
	t.FilesDigest, t.Files, t.Pulls, t.Packed, t.Sources, t.Inputs = r.FilesDigest, r.Files, r.Pulls, r.Packed, r.Sources, r.Inputs
	b, err := json.Marshal(t)
	return string(b), err
}

// RecordOf reads what a pod tells of its container.
func RecordOf(pod Object) (Record, error) {
	var t recordText
	if err := json.Unmarshal([]byte(pod.annotation(recordKey)), &t); err != nil {
		return Record{}, fmt.Errorf("annotation %s of pod %s: %w", recordKey, pod.Name(), err)
	}
	if t.GUID != pod.Name() {
		return Record{}, fmt.Errorf("annotation %s of pod %s is of container %q", recordKey, pod.Name(), t.GUID)
	}
	return Record{Container: t.container(), FilesDigest: t.FilesDigest, Files: t.Files, Pulls: t.Pulls, Packed: t.Packed, Sources: t.Sources, Inputs: t.Inputs}, nil
}

// Annotation is the change that makes a pod tell of r.
func (r Record) Annotation() (map[string]any, error) {
	text, err := r.text()
	return doc{"metadata": doc{"annotations": doc{recordKey: text}}}, err
}
