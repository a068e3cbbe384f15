package cf

// Org is an organization.
type Org struct {
	Resource
	Metadata
	Name        string
	Suspended   bool
	QuotaGUID   string
	SegmentGUID string // its default isolation segment; "" for the shared one
}

// Space is where apps live.
type Space struct {
	Resource
	Metadata
	Name        string
	OrgGUID     string
	AllowSSH    bool
	SegmentGUID string // its isolation segment; "" for its org's
	PoolGUID    string // its placement pool; "" for the default one
	QuotaGUID   string // its own quota, of its org; "" for none
}

// OrgQuota limits what an org may use; nil means no limit.
type OrgQuota struct {
	Resource
	Name   string
	Limits QuotaLimits
}

// SpaceQuota limits what each of the spaces that have it may use, of what its
// org may.
type SpaceQuota struct {
	Resource
	Name    string
	OrgGUID string
	Limits  QuotaLimits // without TotalDomains: domains are the org's
}

// QuotaLimits are the limits of a quota; nil means no limit.
type QuotaLimits struct {
	TotalMemoryMB           *int `json:"total_memory_in_mb"`
	InstanceMemoryMB        *int `json:"per_process_memory_in_mb"`
	TotalInstances          *int `json:"total_instances"`
	AppTasks                *int `json:"per_app_tasks"`
	LogRateLimitBytes       *int `json:"log_rate_limit_in_bytes_per_second"`
	PaidServices            bool `json:"paid_services_allowed"`
	TotalServiceInstances   *int `json:"total_service_instances"`
	TotalServiceKeys        *int `json:"total_service_keys"`
	TotalRoutes             *int `json:"total_routes"`
	TotalReservedRoutePorts *int `json:"total_reserved_ports"`
	TotalDomains            *int `json:"total_domains"`
}
