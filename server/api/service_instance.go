package api

import (
	"encoding/json"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
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
	return with(d, c.viewManaged(i))
}

// viewManaged is what only a managed service instance shows.
func (c *call) viewManaged(i *cf.ServiceInstance) doc {
	d := doc{"dashboard_url": control.OrNil(i.DashboardURL), "maintenance_info": doc{}, "upgrade_available": false}
	if i.MaintenanceVersion != "" {
		d["maintenance_info"] = doc{"version": i.MaintenanceVersion}
	}
	if plan, err := recall(c, store.ServicePlans, i.PlanGUID); err == nil {
		d["upgrade_available"] = services.VersionOf(plan) != i.MaintenanceVersion
	}
	if len(i.BrokerMetadata) > 0 {
		d["broker_provided_metadata"] = i.BrokerMetadata
	}
	return d
}

// serviceRequest is a request to make a service instance.
type serviceRequest struct {
	Type          string                        `json:"type"`
	Name          change.Field[string]          `json:"name"`
	Tags          change.Field[tagList]         `json:"tags"`
	Credentials   change.Field[json.RawMessage] `json:"credentials"`
	DrainURL      change.Field[string]          `json:"syslog_drain_url"`
	RouteURL      change.Field[string]          `json:"route_service_url"`
	Parameters    change.Field[json.RawMessage] `json:"parameters"`
	Metadata      *change.Metadata              `json:"metadata"`
	Relationships struct {
		Space *ref `json:"space"`
		Plan  *ref `json:"service_plan"`
	} `json:"relationships"`
}

func (r serviceRequest) Validate() []string {
	messages := control.Must(r.Type == cf.Managed || r.Type == cf.UserProvided, "Type must be one of 'managed', 'user-provided'",
		r.Name.V != "", "Name can't be blank")
	messages = append(messages, relationFaults(r.Relationships.Space, "space")...)
	if len(messages) > 0 {
		return messages
	}
	if r.Type == cf.UserProvided {
		messages = control.Must(!r.Parameters.Set, "Unknown field(s): 'parameters'", r.Relationships.Plan == nil, "Relationships Unknown field(s): 'service_plan'")
		return append(messages, userProvidedFaults(r.Credentials, r.DrainURL, r.RouteURL)...)
	}
	messages = control.Must(!r.Credentials.Set, "Unknown field(s): 'credentials'", !r.DrainURL.Set, "Unknown field(s): 'syslog_drain_url'",
		!r.RouteURL.Set, "Unknown field(s): 'route_service_url'", isObject(r.Parameters), "Parameters must be an object")
	return append(messages, relationFaults(r.Relationships.Plan, "service_plan")...)
}

func createServiceInstance(c *call) (*response, error) {
	var req serviceRequest
	if err := c.Feature("service_instance_creation"); err != nil {
		return nil, err
	}
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	space, err := c.TargetSpace(req.Relationships.Space.guid())
	if err != nil {
		return nil, err
	}
	i := &cf.ServiceInstance{Type: req.Type, SpaceGUID: space.GUID, Name: req.Name.V, Tags: req.Tags.V}
	if err := req.Metadata.Apply(&i.Metadata); err != nil {
		return nil, err
	}
	if req.Type == cf.UserProvided {
		return c.createUserProvided(i, req, audited)
	}
	return c.createManaged(i, req, audited)
}

// serviceInstance is the service instance of {guid}, if the actor sees it and
// satisfies the rule in its own space.
func (c *call) serviceInstance() (*cf.ServiceInstance, error) {
	i, err := store.ServiceInstances.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	_, err = c.InSpace(i.SpaceGUID)
	return i, err
}

func updateServiceInstance(c *call) (*response, error) {
	i, err := c.serviceInstance()
	if err != nil {
		return nil, err
	}
	if i.Type == cf.UserProvided {
		return c.updateUserProvided(i)
	}
	return c.updateManaged(i)
}

func deleteServiceInstance(c *call) (*response, error) {
	i, err := c.serviceInstance()
	if err != nil {
		return nil, err
	}
	if c.Request.URL.Query().Get("purge") == "true" {
		return c.purgeServiceInstance(i)
	}
	if services.Changing(i.LastOperation) {
		return nil, services.Busy()
	}
	if i.Type == cf.Managed {
		return c.deleteManaged(i)
	}
	if err := services.Remove(c.Session, i, audit.UserProvidedDelete); err != nil {
		return nil, err
	}
	return noContent()
}

// purgeServiceInstance forgets a service instance and what is bound to it,
// without a word to the broker.
func (c *call) purgeServiceInstance(i *cf.ServiceInstance) (*response, error) {
	if i.Type == cf.Managed {
		may, err := services.MayPurge(c.Session, i)
		if err != nil {
			return nil, err
		}
		if !may {
			return nil, access.NotAuthorized()
		}
	}
	if err := services.Remove(c.Session, i, audit.ServiceInstancePurge); err != nil {
		return nil, err
	}
	return noContent()
}

// showServicePermissions tells anyone what the actor may do with a service
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
