package api

import (
	"encoding/json"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

func viewRouteBinding(c *call, b *cf.RouteBinding) doc {
	self := "/v3/service_route_bindings/" + b.GUID
	links := doc{"self": c.link("%s", self), "service_instance": c.link("/v3/service_instances/%s", b.InstanceGUID), "route": c.link("/v3/routes/%s", b.RouteGUID)}
	if i, err := recall(c, store.ServiceInstances, b.InstanceGUID); err == nil && i.Type == cf.Managed {
		links["parameters"] = c.link("%s/parameters", self)
	}
	return with(resource(b.Resource), doc{"route_service_url": orNil(b.RouteServiceURL), "last_operation": viewOperation(b.LastOperation),
		"metadata": metadata(b.Metadata), "relationships": doc{"service_instance": toOne(b.InstanceGUID), "route": toOne(b.RouteGUID)}, "links": links})
}

const routeBindingIncludes = "include=route|service_instance"

func includeOfRouteBindings(c *call, rows []*cf.RouteBinding, what string) (string, []doc, error) {
	if what == "route" {
		docs, err := including(c, store.Routes, viewRoute, control.GUIDs(rows, func(b *cf.RouteBinding) string { return b.RouteGUID }))
		return "routes", docs, err
	}
	docs, err := includingInstances(c, control.GUIDs(rows, func(b *cf.RouteBinding) string { return b.InstanceGUID }))
	return "service_instances", docs, err
}

var listRouteBindings = inTx(func(c *call) (*response, error) {
	return listForeseeing(c, store.RouteBindings, viewRouteBinding, includeOfRouteBindings, func(rows []*cf.RouteBinding) error {
		return c.foreseeInstances(control.GUIDs(rows, func(b *cf.RouteBinding) string { return b.InstanceGUID }))
	}, routeBindingIncludes)
})

func createRouteBinding(c *call) (*response, error) {
	var req struct {
		Parameters    opt[json.RawMessage] `json:"parameters"`
		Metadata      *metadataPatch       `json:"metadata"`
		Relationships struct {
			Instance *ref `json:"service_instance"`
			Route    *ref `json:"route"`
		} `json:"relationships"`
	}
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	faults := append(control.Must(isObject(req.Parameters), "Parameters must be an object"), relationFaults(req.Relationships.Instance, "service_instance")...)
	if err := control.Invalid(append(faults, relationFaults(req.Relationships.Route, "route")...)); err != nil {
		return nil, err
	}
	i, r, err := c.routeAndService(req.Relationships.Instance.guid(), req.Relationships.Route.guid())
	if err != nil {
		return nil, err
	}
	if i.Type == cf.UserProvided && req.Parameters.Set {
		return nil, cf.Unprocessable("Binding parameters are not supported for user-provided service instances")
	}
	b := &cf.RouteBinding{InstanceGUID: i.GUID, RouteGUID: r.GUID}
	if err := req.Metadata.apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := c.insertRouteBinding(b, i, r); err != nil {
		return nil, err
	}
	if i.Type == cf.Managed {
		return c.serviceJob(cf.JobCreateRouteBinding, routeBindingType, b.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: audited})
	}
	return &response{status: 201, body: viewRouteBinding(c, b)}, c.routeBindingEvent("create", b, i, audited)
}

// routeBindingType is what jobs of route bindings call them.
const routeBindingType = "service_route_binding"

// routeAndService are the service instance and the route that a request names.
func (c *call) routeAndService(instance, route string) (*cf.ServiceInstance, *cf.Route, error) {
	i, err := store.ServiceInstances.Visible(c.Tx, instance, c.Scope)
	if err == nil {
		_, err = store.Spaces.Visible(c.Tx, i.SpaceGUID, c.Scope)
	}
	if err != nil {
		c.Checked = true
		return nil, nil, control.Unprocessable(err, "The service instance could not be found: %s", instance)
	}
	if _, err := c.InSpace(i.SpaceGUID); err != nil {
		return nil, nil, err
	}
	r, err := store.Routes.Visible(c.Tx, route, c.Scope)
	if err == nil {
		_, err = store.Spaces.Visible(c.Tx, r.SpaceGUID, c.Scope)
	}
	if err != nil {
		err = control.Unprocessable(err, "The route could not be found: %s", route)
	}
	return i, r, err
}

// insertRouteBinding binds a route: to what is user-provided at once; for a
// broker the binding stays initial.
func (c *call) insertRouteBinding(b *cf.RouteBinding, i *cf.ServiceInstance, r *cf.Route) error {
	if err := c.bindsRoutes(i, r); err != nil {
		return err
	}
	have, err := store.RouteBindings.By(c.Tx, "route_guids", r.GUID)
	if err != nil {
		return err
	}
	for _, old := range have {
		if err := c.besidesRoute(old, i); err != nil {
			return err
		}
	}
	if i.Type == cf.Managed {
		if err := c.bindable(i, ""); err != nil {
			return err
		}
	}
	b.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)
	if i.Type == cf.UserProvided {
		b.RouteServiceURL, b.LastOperation = i.RouteServiceURL, c.done(cf.OpCreate, "")
	}
	return store.RouteBindings.Insert(c.Tx, b)
}

// bindsRoutes refuses an instance that no route, or not this one, can be bound
// to.
func (c *call) bindsRoutes(i *cf.ServiceInstance, r *cf.Route) error {
	supports, err := c.isRouteService(i)
	if err != nil {
		return err
	}
	d, err := store.Domains.Get(c.Tx, r.DomainGUID)
	switch {
	case err != nil:
		return err
	case !supports:
		return cf.Unprocessable("This service instance does not support route binding")
	case d.Internal:
		return cf.Unprocessable("Route services cannot be bound to internal routes")
	case r.SpaceGUID != i.SpaceGUID:
		return cf.Unprocessable("The service instance and the route are in different spaces")
	}
	return nil
}

func (c *call) isRouteService(i *cf.ServiceInstance) (bool, error) {
	if i.Type == cf.UserProvided {
		return i.RouteServiceURL != "", nil
	}
	o, err := c.offerOf(i)
	return err == nil && o.offering.Needs(cf.RequiresRoutes), err
}

// besidesRoute looks at the binding that a route has.
func (c *call) besidesRoute(old *cf.RouteBinding, i *cf.ServiceInstance) error {
	switch {
	case old.InstanceGUID != i.GUID:
		return cf.Unprocessable("A route may only be bound to a single service instance")
	case old.LastOperation.Is(cf.OpCreate, cf.OpFailed):
		if err := c.abandon(i, old.GUID); err != nil {
			return err
		}
		return store.RouteBindings.Delete(c.Tx, old.GUID)
	case old.LastOperation.Type == cf.OpCreate:
		return cf.Errorf(cf.RouteAlreadyBound, "The route and service instance are already bound.")
	}
	return cf.Unprocessable("The binding is getting deleted or its deletion failed")
}

// routeBound is the route binding of {guid} with its instance, if the actor
// sees it and satisfies the rule at the route's space.
func (c *call) routeBound() (*cf.RouteBinding, *cf.ServiceInstance, error) {
	b, err := store.RouteBindings.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, nil, err
	}
	i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
	if err != nil {
		return nil, nil, err
	}
	_, err = c.InSpace(i.SpaceGUID)
	return b, i, err
}

func updateRouteBinding(c *call) (*response, error) {
	var req struct {
		Metadata *metadataPatch `json:"metadata"`
	}
	b, i, err := c.routeBound()
	if err != nil {
		return nil, err
	}
	if b.LastOperation.Is(cf.OpDelete, cf.OpInitial, cf.OpInProgress) {
		return nil, cf.Unprocessable("The service route binding is being deleted")
	}
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := store.RouteBindings.Update(c.Tx, b); err != nil {
		return nil, err
	}
	return &response{body: viewRouteBinding(c, b)}, c.routeBindingEvent("update", b, i, audited)
}

func deleteRouteBinding(c *call) (*response, error) {
	b, i, err := c.routeBound()
	if err != nil {
		return nil, err
	}
	if err := bindingIdle(b.LastOperation, i); err != nil {
		return nil, err
	}
	if i.Type == cf.UserProvided {
		if err := c.removeRouteBinding(b, i); err != nil {
			return nil, err
		}
		return noContent()
	}
	b.LastOperation = cf.Begin(cf.OpDelete, cf.OpInProgress, c.Tx.Now)
	if err := store.RouteBindings.Update(c.Tx, b); err != nil {
		return nil, err
	}
	return c.serviceJob(cf.JobDeleteRouteBinding, routeBindingType, b.GUID, cf.ServiceWork{})
}

// removeRouteBinding forgets a route binding.
func (c *call) removeRouteBinding(b *cf.RouteBinding, i *cf.ServiceInstance) error {
	request := doc{"app_guid": nil, "route_guid": b.RouteGUID, "service_instance_guid": b.InstanceGUID}
	if err := c.routeBindingEvent("delete", b, i, request); err != nil {
		return err
	}
	return store.RouteBindings.Delete(c.Tx, b.GUID)
}

func (c *call) routeBindingEvent(what string, b *cf.RouteBinding, i *cf.ServiceInstance, request doc) error {
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return err
	}
	kind := bindingEvents[bindingRoute]
	return c.Audit(audit.Of(kind, what), audit.Target{Type: kind, GUID: b.GUID, Place: access.At(space)}, doc{"request": request})
}

// routeBindingParameters finds which binding's parameters its broker is asked
// for.
func routeBindingParameters(c *call) (ParameterQuery, error) {
	b, i, err := c.routeBound()
	if err != nil {
		return ParameterQuery{}, err
	}
	if err := notMade(bindingRoute, b.LastOperation); err != nil {
		return ParameterQuery{}, err
	}
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return ParameterQuery{}, err
	}
	if !c.MayDevelop(space) {
		return ParameterQuery{}, access.NotAuthorized()
	}
	if i.Type != cf.Managed {
		return ParameterQuery{}, cf.Errorf(cf.BadRequest, "Bad request: user provided service instances do not support fetching route bindings parameters.")
	}
	o, err := c.offerOf(i)
	if err == nil && !o.offering.BindingsRetrievable {
		err = cf.Errorf(cf.BadRequest, "Bad request: this service does not support fetching route bindings parameters.")
	}
	return ParameterQuery{InstanceGUID: i.GUID, BindingGUID: b.GUID}, err
}

// dropRoute deletes a route, and its binding to a service.
func (c *call) dropRoute(r *cf.Route) error {
	bound, err := store.RouteBindings.By(c.Tx, "route_guids", r.GUID)
	if err != nil {
		return err
	}
	for _, b := range bound {
		i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
		if err != nil {
			return err
		}
		if i.Type == cf.Managed {
			if err := c.abandon(i, b.GUID); err != nil {
				return err
			}
		}
		if err := c.removeRouteBinding(b, i); err != nil {
			return err
		}
	}
	return store.Routes.Delete(c.Tx, r.GUID)
}
