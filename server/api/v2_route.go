package api

import (
	"cupola/server/control"
	"cupola/server/control/routes"
	"cupola/store"
	"cupola/store/cf"
)

var v2Routes = v2Kind[cf.Route]{table: store.Routes, views: viewV2Routes,
	filters: map[string]string{"host": "hosts", "domain_guid": "domain_guids", "organization_guid": "organization_guids", "path": "paths", "port": "ports"}}

func portOrNil(r *cf.Route) any {
	if r.Port == 0 {
		return nil
	}
	return r.Port
}

func viewV2Routes(c *call, rows []*cf.Route) ([]doc, error) {
	if err := foresee(c, store.Domains, func(d *cf.Domain) string { return d.GUID }, control.GUIDs(rows, func(r *cf.Route) string { return r.DomainGUID })); err != nil {
		return nil, err
	}
	services := map[string]string{} // service instances by route
	err := byKey(c, store.RouteBindings, "route_guids", control.GUIDs(rows, func(r *cf.Route) string { return r.GUID }), func(b *cf.RouteBinding) { services[b.RouteGUID] = b.InstanceGUID })
	if err != nil {
		return nil, err
	}
	return v2Each(func(c *call, r *cf.Route) (doc, error) { return viewV2Route(c, r, services[r.GUID]) })(c, rows)
}

func viewV2Route(c *call, r *cf.Route, service string) (doc, error) {
	d, err := recall(c, store.Domains, r.DomainGUID)
	if err != nil {
		return nil, err
	}
	self := "/v2/routes/" + r.GUID
	entity := doc{"host": r.Host, "path": r.Path, "domain_guid": r.DomainGUID, "space_guid": r.SpaceGUID, "service_instance_guid": nil, "port": portOrNil(r),
		"domain_url": v2DomainPath(d) + "/" + d.GUID, "space_url": "/v2/spaces/" + r.SpaceGUID, "apps_url": self + "/apps", "route_mappings_url": self + "/route_mappings"}
	if service != "" {
		entity["service_instance_guid"], entity["service_instance_url"] = service, "/v2/service_instances/"+service
	}
	return v2Resource(r.Resource, "/v2/routes", entity), nil
}

func isShared(d *cf.Domain) bool  { return d.OrgGUID == "" }
func isPrivate(d *cf.Domain) bool { return d.OrgGUID != "" }

var (
	v2Domains        = v2Kind[cf.Domain]{table: store.Domains, views: v2Each(viewV2Domain), filters: map[string]string{"name": "names", "owning_organization_guid": "organization_guids"}}
	v2SharedDomains  = v2Kind[cf.Domain]{table: store.Domains, views: v2Each(viewV2Domain), filters: map[string]string{"name": "names"}, pick: isShared}
	v2PrivateDomains = v2Kind[cf.Domain]{table: store.Domains, views: v2Each(viewV2Domain), filters: map[string]string{"name": "names"}, pick: isPrivate}
)

func v2DomainPath(d *cf.Domain) string {
	if isShared(d) {
		return "/v2/shared_domains"
	}
	return "/v2/private_domains"
}

func viewV2Domain(c *call, d *cf.Domain) (doc, error) {
	if isPrivate(d) {
		return v2Resource(d.Resource, v2DomainPath(d), doc{"name": d.Name, "owning_organization_guid": d.OrgGUID, "owning_organization_url": "/v2/organizations/" + d.OrgGUID,
			"shared_organizations_url": "/v2/private_domains/" + d.GUID + "/shared_organizations"}), nil
	}
	kind := any(nil)
	if d.RouterGroupGUID != "" {
		g, err := routes.FindGroup(c.Session, d.RouterGroupGUID)
		if err != nil {
			return nil, err
		}
		if g != nil {
			kind = g.Type
		}
	}
	return v2Resource(d.Resource, v2DomainPath(d), doc{"name": d.Name, "internal": d.Internal, "router_group_guid": control.OrNil(d.RouterGroupGUID), "router_group_type": kind}), nil
}
