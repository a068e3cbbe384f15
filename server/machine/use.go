package machine

import (
	"context"
	"net/http"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/server/refusal"
	"cupola/store"
)

// Use is what all instances have used up to one moment, as GET /v1/machine/use shows it:
// two of them tell rates.
type Use struct {
	At        time.Time        `json:"at"`
	Machine   State            `json:"machine"`
	Instances []InstanceUse    `json:"instances"`
	Requests  map[string]int64 `json:"requests"` // to apps since the daemon started, by the app's GUID
}

// InstanceUse is what one running instance uses.
type InstanceUse struct {
	GUID        string  `json:"instance_guid"`
	Process     string  `json:"process"`            // ORG/SPACE/APP, and the type unless it is web; of what is not an app's the domain and the process GUID
	AppGUID     string  `json:"app_guid,omitempty"` // of a web process: requests to the app are for it
	Index       int     `json:"index"`
	CPUSeconds  float64 `json:"cpu_seconds"` // since it started
	MemoryBytes uint64  `json:"memory_bytes"`
	MemoryQuota uint64  `json:"memory_quota_bytes"`
	DiskBytes   uint64  `json:"disk_bytes"`
	LogRate     uint64  `json:"log_bytes_per_second"`
}

// ServeUse serves what instances use.
func (m *Machine) ServeUse(w http.ResponseWriter, r *http.Request) {
	u, err := m.use(r.Context())
	if err != nil {
		if r.Context().Err() == nil {
			m.Log.ErrorContext(r.Context(), "what instances use was not read", "err", err)
		}
		refusal.Write(w, http.StatusInternalServerError, 10001, "UnknownError", "What instances use could not be read: the daemon's log says why")
		return
	}
	answer(w, u)
}

func (m *Machine) use(ctx context.Context) (u Use, err error) {
	u = Use{Machine: m.State(ctx), Instances: []InstanceUse{}}
	var running []*lrp.Actual
	var names map[string]processName
	if err := m.Store.Read(ctx, func(tx *store.Tx) (err error) {
		if running, err = store.ActualLRPs.By(tx, "states", string(lrp.Running)); err == nil {
			names, err = processNames(tx, running)
		}
		return err
	}); err != nil {
		return u, err
	}
	u.At, u.Requests = time.Now().UTC(), m.Requests()
	for _, a := range running {
		s, known := m.Stats(a.InstanceGUID)
		if !known {
			continue
		}
		name, known := names[processGUID(a)]
		if !known {
			name.text = a.Domain + " " + a.ProcessGUID
		}
		u.Instances = append(u.Instances, InstanceUse{GUID: a.InstanceGUID, Process: name.text, AppGUID: name.app, Index: a.Index,
			CPUSeconds: s.CPU.Seconds(), MemoryBytes: s.MemoryBytes, MemoryQuota: s.MemoryQuota, DiskBytes: s.DiskBytes, LogRate: s.LogRate})
	}
	return u, nil
}

// processGUID is that of the row: of an app's process, without its version.
func processGUID(a *lrp.Actual) string {
	if a.Domain == lrp.DomainApps {
		return desire.CFProcess(a.ProcessGUID)
	}
	return a.ProcessGUID
}

// processName is what a process is called.
type processName struct {
	text string
	app  string // the GUID of the app, of a web process
}

func processNames(tx *store.Tx, running []*lrp.Actual) (map[string]processName, error) {
	var guids []string
	for _, a := range running {
		if a.Domain == lrp.DomainApps {
			guids = append(guids, processGUID(a))
		}
	}
	processes, err := store.Processes.By(tx, "guids", guids...)
	if err != nil {
		return nil, err
	}
	var apps []string
	for _, p := range processes {
		apps = append(apps, p.AppGUID)
	}
	of, err := tx.AppNames(apps)
	names := map[string]processName{}
	for _, p := range processes {
		switch app, known := of[p.AppGUID]; {
		case !known:
		case p.Type == "web":
			names[p.GUID] = processName{app.String(), p.AppGUID}
		default:
			names[p.GUID] = processName{text: app.String() + " (" + p.Type + ")"}
		}
	}
	return names, err
}
