package services

import (
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// RouteBinding is what jobs of route bindings call them.
const RouteBinding = "service_route_binding"

// BindRoute binds a route: to what is user-provided at once; for a
// broker the binding stays initial.
func BindRoute(c *control.Session, b *cf.RouteBinding, i *cf.ServiceInstance, r *cf.Route) error {
	if err := bindsRoutes(c, i, r); err != nil {
		return err
	}
	have, err := store.RouteBindings.By(c.Tx, "route_guids", r.GUID)
	if err != nil {
		return err
	}
	for _, old := range have {
		if err := besidesRoute(c, old, i); err != nil {
			return err
		}
	}
	if i.Type == cf.Managed {
		if err := Bindable(c, i, ""); err != nil {
			return err
		}
	}
	b.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)
	if i.Type == cf.UserProvided {
		b.RouteServiceURL, b.LastOperation = i.RouteServiceURL, Done(c, cf.OpCreate, "")
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
	o, err := OfferOf(c, i)
	return err == nil && o.Offering.Needs(cf.RequiresRoutes), err
}

// besidesRoute looks at the binding that a route has.
func besidesRoute(c *control.Session, old *cf.RouteBinding, i *cf.ServiceInstance) error {
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

// RemoveRouteBinding forgets a route binding.
func RemoveRouteBinding(c *control.Session, b *cf.RouteBinding, i *cf.ServiceInstance) error {
	request := audit.Data{"app_guid": nil, "route_guid": b.RouteGUID, "service_instance_guid": b.InstanceGUID}
	if err := RouteBindingEvent(c, "delete", b, i, request); err != nil {
		return err
	}
	return store.RouteBindings.Delete(c.Tx, b.GUID)
}

// RouteBindingEvent records an event of a route binding.
func RouteBindingEvent(c *control.Session, what string, b *cf.RouteBinding, i *cf.ServiceInstance, request audit.Data) error {
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return err
	}
	kind := bindingEvents[RouteKind]
	return c.Audit(audit.Of(kind, what), audit.Target{Type: kind, GUID: b.GUID, Place: access.At(space)}, audit.Data{"request": request})
}
