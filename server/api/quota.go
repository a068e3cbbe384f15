package api

import (
	"cupola/server/authz"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

func viewUsage(u orgs.Usage) doc {
	return doc{"started_instances": u.Instances, "memory_in_mb": u.MemoryMB, "routes": u.Routes, "service_instances": u.Services, "reserved_ports": u.Ports,
		"domains": u.Domains, "per_app_tasks": u.Tasks, "service_keys": u.Keys}
}

func showOrgUsage(c *call) (*response, error) {
	o, err := findOrg(c)
	if err != nil {
		return nil, err
	}
	u, err := orgs.UsageOfOrg(c.Session, o)
	return &response{body: doc{"usage_summary": viewUsage(u), "links": doc{
		"self":         c.link("/v3/organizations/%s/usage_summary", o.GUID),
		"organization": c.link("/v3/organizations/%s", o.GUID)}}}, err
}

func showSpaceUsage(c *call) (*response, error) {
	s, err := findSpace(c)
	if err != nil {
		return nil, err
	}
	u, err := orgs.UsageOfSpace(c.Session, s)
	return &response{body: doc{"usage_summary": viewUsage(u), "links": doc{
		"self":  c.link("/v3/spaces/%s/usage_summary", s.GUID),
		"space": c.link("/v3/spaces/%s", s.GUID)}}}, err
}

// showUsage is for those who see everything; for others there is no such path.
func showUsage(c *call) (*response, error) {
	if c.PermitAdmin() != nil {
		return nil, cf.Errorf(cf.NotFound, "Unknown request")
	}
	u, err := orgs.UsageOfAll(c.Session)
	return &response{body: doc{"usage_summary": viewUsage(u), "links": doc{"self": c.link("/v3/info/usage_summary")}}}, err
}

// viewLimits is what quotas of orgs and of spaces show alike.
func viewLimits(name string, l cf.QuotaLimits) doc {
	return doc{
		"name": name,
		"apps": doc{"total_memory_in_mb": l.TotalMemoryMB, "per_process_memory_in_mb": l.InstanceMemoryMB, "total_instances": l.TotalInstances,
			"per_app_tasks": l.AppTasks, "log_rate_limit_in_bytes_per_second": l.LogRateLimitBytes},
		"services": doc{"paid_services_allowed": l.PaidServices, "total_service_instances": l.TotalServiceInstances, "total_service_keys": l.TotalServiceKeys},
		"routes":   doc{"total_routes": l.TotalRoutes, "total_reserved_ports": l.TotalReservedRoutePorts},
	}
}

func viewOrgQuota(c *call, q *cf.OrgQuota) doc {
	return with(with(resource(q.Resource), viewLimits(q.Name, q.Limits)), doc{
		"domains":       doc{"total_domains": q.Limits.TotalDomains},
		"relationships": doc{"organizations": toMany(orgsWith(c, q))},
		"links":         doc{"self": c.link("/v3/organization_quotas/%s", q.GUID)},
	})
}

func viewQuotaOrgs(c *call, q *cf.OrgQuota) doc {
	return with(toMany(orgsWith(c, q)), doc{"links": doc{"self": c.link("/v3/organization_quotas/%s/relationships/organizations", q.GUID)}})
}

// orgsWith are the orgs with a quota that the actor sees.
func orgsWith(c *call, q *cf.OrgQuota) []string {
	return guidsOf(c, store.Orgs, "organization_quota_guids", q.GUID, func(o *cf.Org) string { return o.GUID })
}

var findOrgQuota = ofPlatform(store.OrgQuotas)

func viewSpaceQuota(c *call, q *cf.SpaceQuota) doc {
	return with(with(resource(q.Resource), viewLimits(q.Name, q.Limits)), doc{
		"relationships": doc{"organization": toOne(q.OrgGUID), "spaces": toMany(spacesWith(c, "space_quota_guids", q.GUID))},
		"links":         doc{"self": c.link("/v3/space_quotas/%s", q.GUID), "organization": c.link("/v3/organizations/%s", q.OrgGUID)},
	})
}

func viewQuotaSpaces(c *call, q *cf.SpaceQuota) doc {
	return with(toMany(spacesWith(c, "space_quota_guids", q.GUID)), doc{"links": doc{"self": c.link("/v3/space_quotas/%s/relationships/spaces", q.GUID)}})
}

// spacesWith are the spaces that a filter accepts and the actor sees.
func spacesWith(c *call, filter, guid string) []string {
	return guidsOf(c, store.Spaces, filter, guid, func(s *cf.Space) string { return s.GUID })
}

var findSpaceQuota = at(store.SpaceQuotas, func(q *cf.SpaceQuota) authz.Place { return authz.Place{OrgGUID: q.OrgGUID} })
