package services

import (
	"encoding/json"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// routeBinding is what jobs of route bindings call them.
const routeBinding = "service_route_binding"

// NewRouteBinding is a binding of a route to be made.
type NewRouteBinding struct {
	Parameters    change.Field[json.RawMessage] `json:"parameters"`
	Metadata      *change.Metadata              `json:"metadata"`
	Relationships struct {
		Instance *change.ToOne `json:"service_instance"`
		Route    *change.ToOne `json:"route"`
	} `json:"relationships"`
}

// Validate lists what is wrong with a request alone.
func (r NewRouteBinding) Validate() []string {
	messages := append(control.Must(isObject(r.Parameters), "Parameters must be an object"), relationFaults(r.Relationships.Instance, "service_instance")...)
	return append(messages, relationFaults(r.Relationships.Route, "route")...)
}

// CreateRouteBinding binds a route: to what is user-provided at once, else by the
// job that is returned.
func CreateRouteBinding(c *control.Session, req NewRouteBinding, request audit.Data) (*cf.RouteBinding, *cf.Job, error) {
	i, r, err := routeAndService(c, req.Relationships.Instance.GUID(), req.Relationships.Route.GUID())
	if err != nil {
		return nil, nil, err
	}
	if err := ParametersTaken(i, req.Parameters.Set); err != nil {
		return nil, nil, err
	}
	b := &cf.RouteBinding{InstanceGUID: i.GUID, RouteGUID: r.GUID}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, nil, err
	}
	if err := bindRoute(c, b, i, r); err != nil {
		return nil, nil, err
	}
	if i.Type == cf.UserProvided {
		return b, nil, routeBindingEvent(c, "create", b, i, request)
	}
	j, err := Ask(c, cf.JobCreateRouteBinding, routeBinding, b.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: request})
	return b, j, err
}

// routeAndService are the service instance and the route that a request names.
func routeAndService(c *control.Session, instance, route string) (*cf.ServiceInstance, *cf.Route, error) {
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
	return i, r, control.Unprocessable(err, "The route could not be found: %s", route)
}

// bindRoute adds the binding of a route; for a broker it stays initial.
func bindRoute(c *control.Session, b *cf.RouteBinding, i *cf.ServiceInstance, r *cf.Route) error {
	if err := bindsRoutes(c, i, r); err != nil {
		return err
	}
	have, err := store.RouteBindings.By(c.Tx, "route_guids", r.GUID)
	if err != nil {
		return err
	}
	for _, old := range have {
		if err := conflictOfRoute(c, old, i); err != nil {
			return err
		}
	}
	if err := bindable(c, i, ""); err != nil {
		return err
	}
	b.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)
	if i.Type == cf.UserProvided {
		b.RouteServiceURL, b.LastOperation = i.RouteServiceURL, done(c, cf.OpCreate, "")
	}
	return store.RouteBindings.Insert(c.Tx, b)
}

// bindsRoutes refuses an instance that no route, or not this one, can be bound
// to.
func bindsRoutes(c *control.Session, i *cf.ServiceInstance, r *cf.Route) error {
	supports, err := isRouteService(c, i)
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

func isRouteService(c *control.Session, i *cf.ServiceInstance) (bool, error) {
	if i.Type == cf.UserProvided {
		return i.RouteServiceURL != "", nil
	}
	o, err := offerOf(c, i)
	return err == nil && o.Offering.Needs(cf.RequiresRoutes), err
}

// conflictOfRoute looks at the binding that a route has.
func conflictOfRoute(c *control.Session, old *cf.RouteBinding, i *cf.ServiceInstance) error {
	switch {
	case old.InstanceGUID != i.GUID:
		return cf.Unprocessable("A route may only be bound to a single service instance")
	case old.LastOperation.Is(cf.OpCreate, cf.OpFailed):
		if err := Abandon(c, i, old.GUID); err != nil {
			return err
		}
		return store.RouteBindings.Delete(c.Tx, old.GUID)
	case old.LastOperation.Type == cf.OpCreate:
		return cf.Errorf(cf.RouteAlreadyBound, "The route and service instance are already bound.")
	}
	return cf.Unprocessable("The binding is getting deleted or its deletion failed")
}

// findRouteBinding is a route binding with its instance, if the actor sees it and
// satisfies the rule at their space.
func findRouteBinding(c *control.Session, guid string) (*cf.RouteBinding, *cf.ServiceInstance, error) {
	b, err := store.RouteBindings.Visible(c.Tx, guid, c.Scope)
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

// RouteBindingToChange is a route binding that the actor may change.
func RouteBindingToChange(c *control.Session, guid string) (*cf.RouteBinding, error) {
	b, _, err := findRouteBinding(c, guid)
	if err == nil && b.LastOperation.Is(cf.OpDelete, cf.OpInitial, cf.OpInProgress) {
		err = cf.Unprocessable("The service route binding is being deleted")
	}
	return b, err
}

// RelabelRouteBinding changes labels and annotations of a route binding.
func RelabelRouteBinding(c *control.Session, b *cf.RouteBinding, req change.Labels, request audit.Data) error {
	i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
	if err != nil {
		return err
	}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return err
	}
	if err := store.RouteBindings.Update(c.Tx, b); err != nil {
		return err
	}
	return routeBindingEvent(c, "update", b, i, request)
}

// DeleteRouteBinding deletes a route binding, by the job that is returned where a
// broker is asked.
func DeleteRouteBinding(c *control.Session, guid string) (*cf.Job, error) {
	b, i, err := findRouteBinding(c, guid)
	if err != nil {
		return nil, err
	}
	if err := BindingIdle(b.LastOperation, i); err != nil {
		return nil, err
	}
	if i.Type == cf.UserProvided {
		return nil, RemoveRouteBinding(c, b, i)
	}
	b.LastOperation = cf.Begin(cf.OpDelete, cf.OpInProgress, c.Tx.Now)
	if err := store.RouteBindings.Update(c.Tx, b); err != nil {
		return nil, err
	}
	return Ask(c, cf.JobDeleteRouteBinding, routeBinding, b.GUID, cf.ServiceWork{})
}

// RemoveRouteBinding forgets a route binding.
func RemoveRouteBinding(c *control.Session, b *cf.RouteBinding, i *cf.ServiceInstance) error {
	request := audit.Data{"app_guid": nil, "route_guid": b.RouteGUID, "service_instance_guid": b.InstanceGUID}
	if err := routeBindingEvent(c, "delete", b, i, request); err != nil {
		return err
	}
	return store.RouteBindings.Delete(c.Tx, b.GUID)
}

func routeBindingEvent(c *control.Session, what string, b *cf.RouteBinding, i *cf.ServiceInstance, request audit.Data) error {
	kind := bindingEvents[routeKind]
	return event(c, audit.Of(kind, what), i.SpaceGUID, audit.Target{Type: kind, GUID: b.GUID}, audit.Data{"request": request})
}
