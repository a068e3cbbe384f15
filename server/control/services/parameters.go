package services

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/store"
	"cupola/store/cf"
)

// InstanceParameters finds a service instance whose parameters its broker can be
// asked for. It is not enough to see it in a space that it is shared with.
func InstanceParameters(c *control.Session, guid string) (instance, _ string, err error) {
	i, err := store.ServiceInstances.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return "", "", err
	}
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return "", "", err
	}
	switch {
	case !c.Actor.May(authz.SpaceReader, access.At(space)):
		return "", "", access.NotAuthorized()
	case i.Type == cf.Managed && i.LastOperation.Is(cf.OpCreate, cf.OpFailed):
		return "", "", cf.Errorf(cf.ResourceNotFound, "Service instance not found")
	}
	can, err := tells(c, i, func(o *cf.ServiceOffering) bool { return o.InstancesRetrievable })
	switch {
	case err != nil:
	case !can:
		err = cf.Errorf(cf.ServiceParametersUnknown, "This service does not support fetching service instance parameters.")
	case i.LastOperation.InProgress():
		err = inProgress(i)
	}
	return i.GUID, "", err
}

// tells reports whether a broker tells the parameters that it has for an instance.
func tells(c *control.Session, i *cf.ServiceInstance, can func(*cf.ServiceOffering) bool) (bool, error) {
	if i.Type != cf.Managed {
		return false, nil
	}
	o, err := offerOf(c, i)
	return err == nil && can(o.Offering), err
}

func tellsOfBindings(o *cf.ServiceOffering) bool { return o.BindingsRetrievable }

// BindingParameters finds a credential binding, of an instance, whose parameters
// the broker can be asked for.
func BindingParameters(c *control.Session, guid string) (instance, binding string, err error) {
	b, i, err := findBinding(c, guid)
	if err != nil {
		return "", "", err
	}
	if err := notMade(b.Type, b.LastOperation); err != nil {
		return "", "", err
	}
	can, err := tells(c, i, tellsOfBindings)
	if err == nil && !can {
		err = cf.Errorf(cf.BindingParametersUnknown, "This service does not support fetching service binding parameters.")
	}
	return i.GUID, b.GUID, err
}

// RouteBindingParameters is BindingParameters for a route binding.
func RouteBindingParameters(c *control.Session, guid string) (instance, binding string, err error) {
	b, i, err := findRouteBinding(c, guid)
	if err != nil {
		return "", "", err
	}
	if err := notMade(routeKind, b.LastOperation); err != nil {
		return "", "", err
	}
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return "", "", err
	}
	can, err := tells(c, i, tellsOfBindings)
	switch {
	case !c.MayDevelop(space):
		err = access.NotAuthorized()
	case err != nil || can:
	case i.Type != cf.Managed:
		err = cf.Errorf(cf.BadRequest, "Bad request: user provided service instances do not support fetching route bindings parameters.")
	default:
		err = cf.Errorf(cf.BadRequest, "Bad request: this service does not support fetching route bindings parameters.")
	}
	return i.GUID, b.GUID, err
}
