package api

import (
	"encoding/json"
	"slices"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
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
		return with(d, doc{"syslog_drain_url": orNil(i.SyslogDrainURL), "route_service_url": orNil(i.RouteServiceURL)})
	}
	relationships["service_plan"] = toOne(i.PlanGUID)
	links["service_plan"] = c.link("/v3/service_plans/%s", i.PlanGUID)
	links["parameters"] = c.link("%s/parameters", self)
	links["shared_spaces"] = c.link("%s/relationships/shared_spaces", self)
	return with(d, c.viewManaged(i))
}

// viewManaged is what only a managed service instance shows.
func (c *call) viewManaged(i *cf.ServiceInstance) doc {
	d := doc{"dashboard_url": orNil(i.DashboardURL), "maintenance_info": doc{}, "upgrade_available": false}
	if i.MaintenanceVersion != "" {
		d["maintenance_info"] = doc{"version": i.MaintenanceVersion}
	}
	if plan, err := recall(c, store.ServicePlans, i.PlanGUID); err == nil {
		d["upgrade_available"] = versionOf(plan) != i.MaintenanceVersion
	}
	if len(i.BrokerMetadata) > 0 {
		d["broker_provided_metadata"] = i.BrokerMetadata
	}
	return d
}

// versionOf is the version of what new instances of a plan run; "" for none.
func versionOf(p *cf.ServicePlan) string {
	if p.MaintenanceInfo == nil {
		return ""
	}
	return p.MaintenanceInfo.Version
}

// serviceRequest is a request to make a service instance.
type serviceRequest struct {
	Type          string               `json:"type"`
	Name          opt[string]          `json:"name"`
	Tags          opt[tagList]         `json:"tags"`
	Credentials   opt[json.RawMessage] `json:"credentials"`
	DrainURL      opt[string]          `json:"syslog_drain_url"`
	RouteURL      opt[string]          `json:"route_service_url"`
	Parameters    opt[json.RawMessage] `json:"parameters"`
	Metadata      *metadataPatch       `json:"metadata"`
	Relationships struct {
		Space *ref `json:"space"`
		Plan  *ref `json:"service_plan"`
	} `json:"relationships"`
}

func (r serviceRequest) validate() []string {
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
	if err := req.Metadata.apply(&i.Metadata); err != nil {
		return nil, err
	}
	if req.Type == cf.UserProvided {
		return c.createUserProvided(i, req, audited)
	}
	return c.createManaged(i, req, audited)
}

// saveServiceInstance inserts or updates a service instance, which must not be
// called as another of its space is, or one that is shared with it.
func (c *call) saveServiceInstance(i *cf.ServiceInstance, save func(*store.Tx, *cf.ServiceInstance) error) error {
	if err := serviceFaults(i); err != nil {
		return err
	}
	named, _, err := store.ServiceInstances.List(c.Tx, store.Query{Where: map[string][]string{"names": {i.Name}, "shared_space_guids": {i.SpaceGUID}}})
	if err != nil {
		return err
	}
	if len(control.Without(named, func(o *cf.ServiceInstance) bool { return o.GUID == i.GUID })) > 0 {
		return nameTaken(i.Name)
	}
	err = save(c.Tx, i)
	if store.IsTaken(err) {
		return nameTaken(i.Name)
	}
	return err
}

func nameTaken(name string) error {
	return cf.Unprocessable("The service instance name is taken: %s.", name)
}

// serviceFaults says in Cloud Controller's words what of a service instance is
// too long.
func serviceFaults(i *cf.ServiceInstance) error {
	const maxName, maxURL = 255, 10_000
	return control.Invalid(control.Must(i.Name != "", "name presence", len([]rune(i.Name)) <= maxName, "name max_length",
		len(i.SyslogDrainURL) <= maxURL, "syslog_drain_url max_length", tagList(i.Tags).fits(), "tags too_long"))
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
	if instanceChanging(i.LastOperation) {
		return nil, instanceBusy()
	}
	if i.Type == cf.Managed {
		return c.deleteManaged(i)
	}
	if err := removeServiceInstance(c, i, audit.UserProvidedDelete); err != nil {
		return nil, err
	}
	return noContent()
}

// instanceChanging tells whether an operation forbids to delete its instance:
// one that a broker takes its time to make can be deleted meanwhile.
func instanceChanging(op cf.LastOperation) bool {
	return op.Is(cf.OpCreate, cf.OpInitial) || op.Type != cf.OpCreate && op.InProgress()
}

func instanceBusy() error {
	return cf.Unprocessable("There is an operation in progress for the service instance.")
}

// purgeServiceInstance forgets a service instance and what is bound to it,
// without a word to the broker.
func (c *call) purgeServiceInstance(i *cf.ServiceInstance) (*response, error) {
	if i.Type == cf.Managed {
		may, err := c.mayPurge(i)
		if err != nil {
			return nil, err
		}
		if !may {
			return nil, access.NotAuthorized()
		}
	}
	if err := removeServiceInstance(c, i, audit.ServiceInstancePurge); err != nil {
		return nil, err
	}
	return noContent()
}

// mayPurge tells whether the actor may have the platform forget what a broker
// has: an admin, or a developer of the space that the broker is of.
func (c *call) mayPurge(i *cf.ServiceInstance) (bool, error) {
	if c.Actor.Admin {
		return true, nil
	}
	o, err := c.offerOf(i)
	if err != nil || o.broker.SpaceGUID == "" {
		return false, err
	}
	space, err := store.Spaces.Get(c.Tx, o.broker.SpaceGUID)
	return err == nil && c.Actor.May(authz.SpaceDeveloper, access.At(space)), err
}

// removeServiceInstance deletes a service instance with all that is bound to
// it, and records it under the given type.
func removeServiceInstance(c *call, i *cf.ServiceInstance, event audit.Type) error {
	err := control.EachOf(c.Session, store.RouteBindings, "service_instance_guids", i.GUID, func(b *cf.RouteBinding) error { return c.removeRouteBinding(b, i) })
	if err != nil {
		return err
	}
	err = control.EachOf(c.Session, store.ServiceBindings, "service_instance_guids", i.GUID, func(b *cf.ServiceBinding) error { return c.removeBinding(b, i) })
	if err != nil {
		return err
	}
	for _, space := range slices.Clone(i.SharedSpaces) {
		if err := c.unshareService(i, space); err != nil {
			return err
		}
	}
	if err := store.ServiceInstances.Delete(c.Tx, i.GUID); err != nil {
		return err
	}
	return c.serviceEvent(event, i, nil)
}

// serviceEvent records an event of a service instance.
func (c *call) serviceEvent(kind audit.Type, i *cf.ServiceInstance, request doc) error {
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return err
	}
	what := "service_instance"
	if i.Type == cf.UserProvided && kind != audit.ServiceInstancePurge {
		what = "user_provided_service_instance"
	}
	return c.Audit(kind, audit.Target{Type: what, GUID: i.GUID, Name: i.Name, Place: access.At(space)}, doc{"request": request})
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
