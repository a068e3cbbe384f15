package api

import "cupola/server/control/quota"

func viewUsage(u quota.Usage) doc {
	return doc{"started_instances": u.Instances, "memory_in_mb": u.MemoryMB, "routes": u.Routes, "service_instances": u.Services, "reserved_ports": u.Ports,
		"domains": u.Domains, "per_app_tasks": u.Tasks, "service_keys": u.Keys}
}

func showOrgUsage(c *call) (*response, error) {
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	u, err := quota.UsageOf(c.Tx, quota.OfOrg(o.GUID), quota.OfOrg(o.GUID), quota.All)
	return &response{body: doc{"usage_summary": viewUsage(u), "links": doc{
		"self":         c.link("/v3/organizations/%s/usage_summary", o.GUID),
		"organization": c.link("/v3/organizations/%s", o.GUID)}}}, err
}

func showSpaceUsage(c *call) (*response, error) {
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	u, err := quota.UsageOf(c.Tx, quota.OfSpace(s.GUID), quota.OfOrg(s.OrgGUID), quota.All)
	return &response{body: doc{"usage_summary": viewUsage(u), "links": doc{
		"self":  c.link("/v3/spaces/%s/usage_summary", s.GUID),
		"space": c.link("/v3/spaces/%s", s.GUID)}}}, err
}

func showUsage(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	u, err := quota.UsageOf(c.Tx, quota.Area{}, quota.Area{}, quota.All)
	return &response{body: doc{"usage_summary": viewUsage(u), "links": doc{"self": c.link("/v3/info/usage_summary")}}}, err
}
