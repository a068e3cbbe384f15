package api

import (
	"fmt"

	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

func viewOrgQuota(c *call, q *cf.OrgQuota) doc {
	l := q.Limits
	return with(resource(q.Resource), doc{
		"name": q.Name,
		"apps": doc{"total_memory_in_mb": l.TotalMemoryMB, "per_process_memory_in_mb": l.InstanceMemoryMB, "total_instances": l.TotalInstances,
			"per_app_tasks": l.AppTasks, "log_rate_limit_in_bytes_per_second": l.LogRateLimitBytes},
		"services":      doc{"paid_services_allowed": l.PaidServices, "total_service_instances": l.TotalServiceInstances, "total_service_keys": l.TotalServiceKeys},
		"routes":        doc{"total_routes": l.TotalRoutes, "total_reserved_ports": l.TotalReservedRoutePorts},
		"domains":       doc{"total_domains": l.TotalDomains},
		"relationships": doc{"organizations": toMany(c.orgsWith(q))},
		"links":         doc{"self": c.link("/v3/organization_quotas/%s", q.GUID)},
	})
}

// orgsWith are the orgs with a quota that the actor sees.
func (c *call) orgsWith(q *cf.OrgQuota) []string {
	orgs, _, err := store.Orgs.List(c.Tx, store.Query{Where: map[string][]string{"organization_quota_guids": {q.GUID}}, Visible: c.scope})
	if err != nil {
		return nil
	}
	return guidsOf(orgs, func(o *cf.Org) string { return o.GUID })
}

type quotaRequest struct {
	Name opt[string] `json:"name"`
	Apps struct {
		TotalMemoryMB     opt[int] `json:"total_memory_in_mb"`
		InstanceMemoryMB  opt[int] `json:"per_process_memory_in_mb"`
		TotalInstances    opt[int] `json:"total_instances"`
		AppTasks          opt[int] `json:"per_app_tasks"`
		LogRateLimitBytes opt[int] `json:"log_rate_limit_in_bytes_per_second"`
	} `json:"apps"`
	Services struct {
		PaidServices          opt[bool] `json:"paid_services_allowed"`
		TotalServiceInstances opt[int]  `json:"total_service_instances"`
		TotalServiceKeys      opt[int]  `json:"total_service_keys"`
	} `json:"services"`
	Routes struct {
		TotalRoutes             opt[int] `json:"total_routes"`
		TotalReservedRoutePorts opt[int] `json:"total_reserved_ports"`
	} `json:"routes"`
	Domains struct {
		TotalDomains opt[int] `json:"total_domains"`
	} `json:"domains"`
	Relationships struct {
		Organizations refs `json:"organizations"`
	} `json:"relationships"`
}

// limit is one number of a quota: its section and name as messages have them,
// what the request says and where it goes.
type limit struct {
	section, name string
	asked         opt[int]
	to            **int
}

func (r *quotaRequest) limits(l *cf.QuotaLimits) []limit {
	return []limit{
		{"Apps", "Total memory in mb", r.Apps.TotalMemoryMB, &l.TotalMemoryMB},
		{"Apps", "Per process memory in mb", r.Apps.InstanceMemoryMB, &l.InstanceMemoryMB},
		{"Apps", "Total instances", r.Apps.TotalInstances, &l.TotalInstances},
		{"Apps", "Per app tasks", r.Apps.AppTasks, &l.AppTasks},
		{"Apps", "Log rate limit in bytes per second", r.Apps.LogRateLimitBytes, &l.LogRateLimitBytes},
		{"Services", "Total service instances", r.Services.TotalServiceInstances, &l.TotalServiceInstances},
		{"Services", "Total service keys", r.Services.TotalServiceKeys, &l.TotalServiceKeys},
		{"Routes", "Total routes", r.Routes.TotalRoutes, &l.TotalRoutes},
		{"Routes", "Total reserved ports", r.Routes.TotalReservedRoutePorts, &l.TotalReservedRoutePorts},
		{"Domains", "Total domains", r.Domains.TotalDomains, &l.TotalDomains},
	}
}

func (r *quotaRequest) validate() []string {
	faults := must(!r.Name.Set || r.Name.V != "", "Name can't be blank", len(r.Name.V) <= 250, "Name is too long (maximum is 250 characters)")
	for _, l := range r.limits(&cf.QuotaLimits{}) {
		if l.asked.V < 0 {
			faults = append(faults, fmt.Sprintf("%s %s must be greater than or equal to 0", l.section, l.name))
		}
	}
	return faults
}

// apply sets what the request names; null lifts a limit.
func (r *quotaRequest) apply(q *cf.OrgQuota) {
	q.Name = r.Name.or(q.Name)
	q.Limits.PaidServices = r.Services.PaidServices.or(q.Limits.PaidServices)
	for _, l := range r.limits(&q.Limits) {
		switch {
		case l.asked.Null:
			*l.to = nil
		case l.asked.Set:
			*l.to = &l.asked.V
		}
	}
}

func createOrgQuota(c *call) (*response, error) {
	if err := c.permitAdmin(); err != nil {
		return nil, err
	}
	var req quotaRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	q := &cf.OrgQuota{Limits: cf.QuotaLimits{PaidServices: true}}
	req.apply(q)
	if q.Name == "" {
		return nil, cf.Unprocessable("Name can't be blank")
	}
	if err := quotaTaken(q, store.OrgQuotas.Insert(c.Tx, q)); err != nil {
		return nil, err
	}
	if err := c.applyQuota(q, req.Relationships.Organizations.guids()); err != nil {
		return nil, err
	}
	if err := c.quotaEvent("create", q); err != nil {
		return nil, err
	}
	return created(viewOrgQuota(c, q))
}

func quotaTaken(q *cf.OrgQuota, err error) error {
	if store.IsTaken(err) {
		return cf.Unprocessable("Organization Quota '%s' already exists.", q.Name)
	}
	return err
}

func (c *call) quotaEvent(what string, q *cf.OrgQuota) error {
	return c.event("audit.organization_quota."+what, target{kind: "organization_quota", guid: q.GUID, name: q.Name}, nil)
}

// orgQuota is the quota of {guid}, if the actor is an admin.
func (c *call) orgQuota() (*cf.OrgQuota, error) {
	if err := c.permitAdmin(); err != nil {
		return nil, err
	}
	return store.OrgQuotas.Get(c.Tx, c.guid())
}

func updateOrgQuota(c *call) (*response, error) {
	q, err := c.orgQuota()
	if err != nil {
		return nil, err
	}
	var req quotaRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	req.apply(q)
	if err := quotaTaken(q, store.OrgQuotas.Update(c.Tx, q)); err != nil {
		return nil, err
	}
	if err := c.quotaEvent("update", q); err != nil {
		return nil, err
	}
	return ok(viewOrgQuota(c, q))
}

func deleteOrgQuota(c *call) (*response, error) {
	q, err := c.orgQuota()
	if err != nil {
		return nil, err
	}
	n, err := store.Orgs.Count(c.Tx, store.Query{Where: map[string][]string{"organization_quota_guids": {q.GUID}}})
	if err != nil {
		return nil, err
	}
	if n > 0 {
		return nil, cf.Unprocessable("This quota is applied to one or more organizations. Apply different quotas to those organizations before deleting.")
	}
	if err := store.OrgQuotas.Delete(c.Tx, q.GUID); err != nil {
		return nil, err
	}
	if err := c.quotaEvent("delete", q); err != nil {
		return nil, err
	}
	return c.accepted("organization_quota.delete", "organization_quotas", q.GUID)
}

func applyOrgQuota(c *call) (*response, error) {
	q, err := c.orgQuota()
	if err != nil {
		return nil, err
	}
	var req refs
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := c.applyQuota(q, req.guids()); err != nil {
		return nil, err
	}
	return ok(with(toMany(c.orgsWith(q)), doc{"links": doc{"self": c.link("/v3/organization_quotas/%s/relationships/organizations", q.GUID)}}))
}

// applyQuota gives orgs a quota.
func (c *call) applyQuota(q *cf.OrgQuota, orgs []string) error {
	var unknown []string
	for _, guid := range orgs {
		o, err := store.Orgs.Get(c.Tx, guid)
		if store.IsNotFound(err) {
			unknown = append(unknown, guid)
			continue
		}
		if err != nil {
			return err
		}
		o.QuotaGUID = q.GUID
		if err := store.Orgs.Update(c.Tx, o); err != nil {
			return err
		}
		if err := c.event("audit.organization_quota.apply", target{"organization_quota", q.GUID, q.Name, authz.Place{OrgGUID: guid}}, nil); err != nil {
			return err
		}
	}
	if len(unknown) > 0 {
		return cf.Unprocessable("Organizations with guids %s do not exist", inspect(unknown))
	}
	return nil
}

// SeedQuota makes the quota that new orgs get, with the limits of Cloud
// Foundry's own default deployment, when there is no quota.
func SeedQuota(tx *store.Tx) error {
	n, err := store.OrgQuotas.Count(tx, store.Query{})
	if err != nil || n > 0 {
		return err
	}
	memory, routes, ports := 102400, 1000, 0
	return store.OrgQuotas.Insert(tx, &cf.OrgQuota{Name: "default", Limits: cf.QuotaLimits{
		PaidServices: true, TotalMemoryMB: &memory, TotalRoutes: &routes, TotalReservedRoutePorts: &ports}})
}
