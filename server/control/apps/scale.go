package apps

import (
	"fmt"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/store/cf"
)

// Check is a change of a health check.
type Check struct {
	Type change.Field[string] `json:"type"`
	Data struct {
		Endpoint          change.Field[string] `json:"endpoint"`
		Timeout           change.Field[int]    `json:"timeout"`
		InvocationTimeout change.Field[int]    `json:"invocation_timeout"`
		Interval          change.Field[int]    `json:"interval"`
	} `json:"data"`
}

// Apply changes h; what names it in messages.
func (r *Check) Apply(h *cf.HealthCheck, what string) error {
	if r == nil {
		return nil
	}
	h.Type = r.Type.Or(h.Type)
	h.Timeout = r.Data.Timeout.Or(keep(r.Data.Timeout, h.Timeout))
	h.InvocationTimeout = r.Data.InvocationTimeout.Or(keep(r.Data.InvocationTimeout, h.InvocationTimeout))
	h.Interval = r.Data.Interval.Or(keep(r.Data.Interval, h.Interval))
	h.Endpoint = r.Data.Endpoint.Or(h.Endpoint)
	if h.Type == "http" && h.Endpoint == "" {
		h.Endpoint = "/"
	}
	if h.Type != "http" && r.Data.Endpoint.Set && !r.Data.Endpoint.Null {
		return cf.Unprocessable("%s type must be \"http\" to set a health check HTTP endpoint.", what)
	}
	if h.Type != "http" {
		h.Endpoint = ""
	}
	return control.Invalid(control.Must(cf.IsCheckType(h.Type), what+cf.CheckTypeMessage,
		h.Timeout >= 0, what+" timeout must be greater than or equal to 1",
		h.InvocationTimeout >= 0, what+" invocation timeout must be greater than or equal to 1",
		h.Interval >= 0, what+" interval must be greater than or equal to 1",
		h.Endpoint == "" || h.Endpoint[0] == '/', what+" endpoint must be a valid URI path"))
}

// keep is the value that an absent field leaves: a null one resets it.
func keep(o change.Field[int], was int) int {
	if o.Null {
		return 0
	}
	return was
}

// Scale is a change of a process's instances and limits.
type Scale struct {
	Instances    change.Field[int]   `json:"instances"`
	MemoryMB     change.Field[int]   `json:"memory_in_mb"`
	DiskMB       change.Field[int]   `json:"disk_in_mb"`
	LogRateLimit change.Field[int64] `json:"log_rate_limit_in_bytes_per_second"`
}

// Validate lists what is wrong with a change alone.
func (r Scale) Validate() []string {
	return control.Must(!r.Instances.Set || r.Instances.V >= 0, "Instances must be greater than or equal to 0",
		r.Instances.V <= maxInstances, fmt.Sprintf("Instances must be less than or equal to %d", maxInstances),
		r.MemoryMB.Or(1) > 0, "Memory in mb must be greater than 0",
		r.MemoryMB.V <= maxMB, fmt.Sprintf("Memory in mb must be less than or equal to %d", maxMB),
		r.DiskMB.Or(1) > 0, "Disk in mb must be greater than 0",
		!r.LogRateLimit.Set || r.LogRateLimit.V >= -1, "Log rate limit in bytes per second must be greater than or equal to -1")
}

// Apply changes a process.
func (r Scale) Apply(p *cf.Process) error {
	if err := control.Invalid(r.Validate()); err != nil {
		return err
	}
	p.Instances, p.MemoryMB, p.DiskMB = r.Instances.Or(p.Instances), r.MemoryMB.Or(p.MemoryMB), r.DiskMB.Or(p.DiskMB)
	p.LogRateLimit = r.LogRateLimit.Or(p.LogRateLimit)
	if p.DiskMB > maxDiskMB {
		return cf.Unprocessable("disk_quota too much disk requested (requested %d MB - must be less than %d MB)", p.DiskMB, maxDiskMB)
	}
	return nil
}
