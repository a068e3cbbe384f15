package orgs

import (
	"fmt"
	"math"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/store/cf"
)

// QuotaChange is what changes of quotas of orgs and of spaces have in common.
type QuotaChange struct {
	Name change.Field[string] `json:"name"`
	Apps struct {
		TotalMemoryMB     change.Field[int] `json:"total_memory_in_mb"`
		InstanceMemoryMB  change.Field[int] `json:"per_process_memory_in_mb"`
		TotalInstances    change.Field[int] `json:"total_instances"`
		AppTasks          change.Field[int] `json:"per_app_tasks"`
		LogRateLimitBytes change.Field[int] `json:"log_rate_limit_in_bytes_per_second"`
	} `json:"apps"`
	Services struct {
		PaidServices          change.Field[bool] `json:"paid_services_allowed"`
		TotalServiceInstances change.Field[int]  `json:"total_service_instances"`
		TotalServiceKeys      change.Field[int]  `json:"total_service_keys"`
	} `json:"services"`
	Routes struct {
		TotalRoutes             change.Field[int] `json:"total_routes"`
		TotalReservedRoutePorts change.Field[int] `json:"total_reserved_ports"`
	} `json:"routes"`
}

// limit is one number of a quota: its section and name as messages have them,
// what the request says, the most it may be, and where it goes.
type limit struct {
	section, name string
	asked         change.Field[int]
	most          int
	to            **int
}

func (r *QuotaChange) limits(l *cf.QuotaLimits) []limit {
	const most = math.MaxInt32
	return []limit{
		{"Apps", "Total memory in mb", r.Apps.TotalMemoryMB, most, &l.TotalMemoryMB},
		{"Apps", "Per process memory in mb", r.Apps.InstanceMemoryMB, most, &l.InstanceMemoryMB},
		{"Apps", "Total instances", r.Apps.TotalInstances, most, &l.TotalInstances},
		{"Apps", "Per app tasks", r.Apps.AppTasks, most, &l.AppTasks},
		{"Apps", "Log rate limit in bytes per second", r.Apps.LogRateLimitBytes, math.MaxInt64, &l.LogRateLimitBytes},
		{"Services", "Total service instances", r.Services.TotalServiceInstances, most, &l.TotalServiceInstances},
		{"Services", "Total service keys", r.Services.TotalServiceKeys, most, &l.TotalServiceKeys},
		{"Routes", "Total routes", r.Routes.TotalRoutes, most, &l.TotalRoutes},
		{"Routes", "Total reserved ports", r.Routes.TotalReservedRoutePorts, most, &l.TotalReservedRoutePorts},
	}
}

// Validate lists what is wrong with the change, in Cloud Controller's words.
func (r *QuotaChange) Validate() []string {
	faults := control.Must(!r.Name.Set || r.Name.V != "", "Name can't be blank", len(r.Name.V) <= 250, "Name is too long (maximum is 250 characters)")
	return append(faults, limitFaults(r.limits(&cf.QuotaLimits{}))...)
}

func limitFaults(limits []limit) (faults []string) {
	for _, l := range limits {
		faults = append(faults, control.Must(l.asked.V >= 0, fmt.Sprintf("%s %s must be greater than or equal to 0", l.section, l.name),
			l.asked.V <= l.most, fmt.Sprintf("%s %s must be less than or equal to %d", l.section, l.name, l.most))...)
	}
	return faults
}

// apply sets what the change names; null lifts a limit.
func (r *QuotaChange) apply(name *string, to *cf.QuotaLimits) {
	*name = r.Name.Or(*name)
	to.PaidServices = r.Services.PaidServices.Or(to.PaidServices)
	setLimits(r.limits(to))
}

func setLimits(limits []limit) {
	for _, l := range limits {
		switch {
		case l.asked.Null:
			*l.to = nil
		case l.asked.Set:
			*l.to = &l.asked.V
		}
	}
}

// atMost reports whether a limit, of which nil is none, is not above another.
func atMost(a, b *int) bool {
	return a == nil || b == nil || *a <= *b
}
