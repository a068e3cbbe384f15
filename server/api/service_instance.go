package api

import (
	"encoding/json"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

func viewServiceInstance(c *call, i *cf.ServiceInstance) doc {
	self := "/v3/service_instances/" + i.GUID
	tags := i.Tags
	if tags == nil {
		tags = []string{}
	}
	relationships := doc{"space": toOne(i.SpaceGUID)}
	links := doc{
		"self":                        c.link("%s", self),
		"space":                       c.link("/v3/spaces/%s", i.SpaceGUID),
		"service_credential_bindings": c.link("/v3/service_credential_bindings?service_instance_guids=%s", i.GUID),
		"service_route_bindings":      c.link("/v3/service_route_bindings?service_instance_guids=%s", i.GUID),
	}
	d := with(resource(i.Resource), doc{"name": i.Name, "type": i.Type, "tags": tags, "last_operation": viewOperation(i.LastOperation),
		"metadata": metadata(i.Metadata), "relationships": relationships, "links": links})
	if i.Type == cf.UserProvided {
		links["credentials"] = c.link("%s/credentials", self)
		return with(d, doc{"syslog_drain_url": control.OrNil(i.SyslogDrainURL), "route_service_url": control.OrNil(i.RouteServiceURL)})
	}
	relationships["service_plan"] = toOne(i.PlanGUID)
	links["service_plan"] = c.link("/v3/service_plans/%s", i.PlanGUID)
	links["parameters"] = c.link("%s/parameters", self)
	links["shared_spaces"] = c.link("%s/relationships/shared_spaces", self)
	return with(d, viewManaged(c, i))
}

// viewManaged is what only a managed service instance shows.
func viewManaged(c *call, i *cf.ServiceInstance) doc {
	d := doc{"dashboard_url": control.OrNil(i.DashboardURL), "maintenance_info": doc{}, "upgrade_available": false}
	if i.MaintenanceVersion != "" {
		d["maintenance_info"] = doc{"version": i.MaintenanceVersion}
	}
	if plan, err := recall(c, store.ServicePlans.Table, i.PlanGUID); err == nil {
		d["upgrade_available"] = services.VersionOf(plan) != i.MaintenanceVersion
	}
	if len(i.BrokerMetadata) > 0 {
		d["broker_provided_metadata"] = i.BrokerMetadata
	}
	return d
}

func createServiceInstance(c *call) (*response, error) {
	if err := c.Feature("service_instance_creation"); err != nil {
		return nil, err
	}
	return provide(services.CreateInstance, viewServiceInstance)(c)
}

var findInstance = byGUID(services.FindInstance)

func updateServiceInstance(c *call) (*response, error) {
	i, err := findInstance(c)
	if err != nil {
		return nil, err
	}
	found := func(*call) (*cf.ServiceInstance, error) { return i, nil }
	if i.Type == cf.UserProvided {
		return amend(found, direct(services.UpdateUserProvided), viewServiceInstance)(c)
	}
	return amend(found, services.UpdateManaged, viewServiceInstance)(c)
}

func deleteServiceInstance(c *call) (*response, error) {
	if c.Request.URL.Query().Get("purge") == "true" {
		return drop(findInstance, services.PurgeInstance)(c)
	}
	return withdraw(services.DeleteInstance)(c)
}

// showServicePermissions shows anyone what the actor may do with a service
// instance: brokers' dashboards ask.
func showServicePermissions(c *call) (*response, error) {
	i, err := store.ServiceInstances.Get(c.Tx, c.guid())
	if err != nil {
		return nil, err
	}
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return nil, err
	}
	org, err := store.Orgs.Get(c.Tx, space.OrgGUID)
	if err != nil {
		return nil, err
	}
	_, err = store.ServiceInstances.Visible(c.Tx, i.GUID, c.Scope)
	if err != nil && !store.IsNotFound(err) {
		return nil, err
	}
	manage := c.Actor.Admin || !org.Suspended && c.Actor.MayWrite() && c.Actor.May(authz.SpaceDeveloper, authz.Place{OrgGUID: org.GUID, SpaceGUID: space.GUID})
	return ok(doc{"manage": manage, "read": err == nil})
}

// showServiceCredentials shows what a user-provided service instance was given.
func showServiceCredentials(c *call) (*response, error) {
	credentials, err := services.UserProvidedCredentials(c.Session, c.guid())
	return &response{body: orObject(credentials)}, err
}

// orObject is a JSON object, {} for none.
func orObject(text json.RawMessage) any {
	if len(text) == 0 {
		return doc{}
	}
	return text
}
