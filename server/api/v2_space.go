package api

import (
	"cupola/server/control"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

var v2Orgs = v2Kind[cf.Org]{table: store.Orgs, filters: map[string]string{"name": "names"}, views: v2Each(viewV2Org)}

func viewV2Org(_ *call, o *cf.Org) (doc, error) {
	self, status := "/v2/organizations/"+o.GUID, "active"
	if o.Suspended {
		status = "suspended"
	}
	return v2Resource(o.Resource, "/v2/organizations", doc{
		"name": o.Name, "billing_enabled": false, "quota_definition_guid": control.OrNil(o.QuotaGUID), "status": status, "default_isolation_segment_guid": control.OrNil(o.SegmentGUID),
		"quota_definition_url": "/v2/quota_definitions/" + o.QuotaGUID, "spaces_url": self + "/spaces", "domains_url": self + "/domains", "private_domains_url": self + "/private_domains",
		"users_url": self + "/users", "managers_url": self + "/managers", "billing_managers_url": self + "/billing_managers", "auditors_url": self + "/auditors",
		"app_events_url": self + "/app_events", "space_quota_definitions_url": self + "/space_quota_definitions",
	}), nil
}

var v2Spaces = v2Kind[cf.Space]{table: store.Spaces, views: v2Each(viewV2Space),
	filters: map[string]string{"name": "names", "organization_guid": "organization_guids", "isolation_segment_guid": "isolation_segment_guids"}}

func viewV2Space(_ *call, s *cf.Space) (doc, error) {
	self := "/v2/spaces/" + s.GUID
	entity := doc{
		"name": s.Name, "organization_guid": s.OrgGUID, "space_quota_definition_guid": control.OrNil(s.QuotaGUID), "isolation_segment_guid": control.OrNil(s.SegmentGUID), "allow_ssh": s.AllowSSH,
		"organization_url": "/v2/organizations/" + s.OrgGUID, "developers_url": self + "/developers", "managers_url": self + "/managers", "auditors_url": self + "/auditors",
		"apps_url": self + "/apps", "routes_url": self + "/routes", "domains_url": self + "/domains", "service_instances_url": self + "/service_instances",
		"app_events_url": self + "/app_events", "events_url": self + "/events", "security_groups_url": self + "/security_groups", "staging_security_groups_url": self + "/staging_security_groups",
	}
	if s.SegmentGUID != "" {
		entity["isolation_segment_url"] = "/v3/isolation_segments/" + s.SegmentGUID
	}
	return v2Resource(s.Resource, "/v2/spaces", entity), nil
}

// v2SpaceSummary is GET /v2/spaces/{guid}/summary: the apps and services of a space.
func v2SpaceSummary(c *call) (*response, error) {
	s, err := c.Space(c.guid())
	if err != nil {
		return nil, err
	}
	found, err := store.Apps.By(c.Tx, "space_guids", s.GUID)
	if err != nil {
		return nil, err
	}
	all, err := readV2Summaries(c, found)
	if err != nil {
		return nil, err
	}
	appDocs := []doc{}
	for _, a := range found {
		d, err := all.app(c, a)
		if err != nil {
			return nil, err
		}
		if d != nil {
			appDocs = append(appDocs, d)
		}
	}
	instances, err := store.ServiceInstances.By(c.Tx, "space_guids", s.GUID)
	if err != nil {
		return nil, err
	}
	if err := all.countUsers(c, control.GUIDs(instances, func(i *cf.ServiceInstance) string { return i.GUID })); err != nil {
		return nil, err
	}
	services := []doc{}
	for _, i := range instances {
		services = append(services, summaryOfService(i, len(all.users[i.GUID])))
	}
	return ok(doc{"guid": s.GUID, "name": s.Name, "apps": appDocs, "services": services})
}

// summaryOfService is a service instance in the summaries of apps and spaces, with how
// many apps are bound to it.
func summaryOfService(i *cf.ServiceInstance, bound int) doc {
	d := doc{"guid": i.GUID, "name": i.Name, "bound_app_count": bound, "type": v2TypeOf(i)}
	if i.Type == cf.Managed {
		with(d, doc{"last_operation": viewOperation(i.LastOperation), "dashboard_url": control.OrNil(i.DashboardURL), "shared_from": nil, "shared_to": []doc{}})
	}
	return d
}

// summaryOfRoute is a route in the summaries of apps and spaces.
func summaryOfRoute(c *call, r *cf.Route) (uri string, summary doc, err error) {
	d, err := recall(c, store.Domains, r.DomainGUID)
	if err != nil {
		return "", nil, err
	}
	return desire.URI(r, d), doc{"guid": r.GUID, "host": r.Host, "port": portOrNil(r), "path": r.Path, "domain": doc{"guid": d.GUID, "name": d.Name}}, nil
}
