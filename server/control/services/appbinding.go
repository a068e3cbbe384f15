package services

import (
	"slices"

	"cupola/runtime/pattern"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// The strategies by which an app is bound to an instance: once, or several times
// to rotate credentials.
const (
	single   = "single"
	multiple = "multiple"
)

func createAppBinding(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance, req NewBinding) error {
	guid := req.Relationships.App.GUID()
	app, err := store.Apps.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return control.Unprocessable(err, "The app could not be found: '%s'", guid)
	}
	if _, err := c.InSpace(app.SpaceGUID); err != nil {
		return err
	}
	b.AppGUID = app.GUID
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return err
	}
	return BindApp(c, b, i, app, req.Strategy.V)
}

// BindApp binds an app: to what is user-provided at once; for a broker
// the binding stays initial.
func BindApp(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance, app *cf.App, strategy string) error {
	if err := mayBind(c, b, i, app, strategy); err != nil {
		return err
	}
	b.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)
	if i.Type == cf.UserProvided {
		b.Credentials, b.SyslogDrainURL, b.LastOperation = i.Credentials, drainOf(i), done(c, cf.OpCreate, "")
	}
	if err := store.ServiceBindings.Insert(c.Tx, b); err != nil {
		return err
	}
	// What a broker is asked for counts as if it had made it, but for the
	// credentials: server/broker looks at those.
	return fitOnce(c, app, TheApp, func(s cf.AppService) {
		if s.Binding.GUID == b.GUID {
			s.Binding.LastOperation = done(c, cf.OpCreate, "")
		}
	})
}

// mayBind refuses a binding that an app cannot have.
func mayBind(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance, app *cf.App, strategy string) error {
	if app.SpaceGUID != i.SpaceGUID && !slices.Contains(i.SharedSpaces, app.SpaceGUID) {
		return cf.Unprocessable("The service instance and the app are in different spaces")
	}
	if err := bindable(c, i, ""); err != nil {
		return err
	}
	if err := bindableOnceMore(c, b, i, app, strategy); err != nil {
		return err
	}
	return bindingNameFault(b.Name)
}

// bindable refuses a managed instance that cannot be bound now. end is what
// Cloud Controller ends its sentences about keys with.
func bindable(c *control.Session, i *cf.ServiceInstance, end string) error {
	if i.Type != cf.Managed {
		return nil
	}
	o, err := offerOf(c, i)
	if err != nil {
		return err
	}
	switch {
	case !o.Plan.MayBind(o.Offering):
		return cf.Unprocessable("Service plan does not allow bindings%s", end)
	case o.Offering.Needs(cf.RequiresVolumes) && !c.Platform.Mounts(o.Offering.BrokerGUID):
		return cf.Unprocessable("Support for volume mount services is disabled%s", end)
	case i.LastOperation.Is(cf.OpCreate, cf.OpFailed):
		return cf.Unprocessable("Service instance not found")
	case i.LastOperation.InProgress():
		return cf.Unprocessable("There is an operation in progress for the service instance")
	}
	return nil
}

// bindableOnceMore looks at the bindings that the app has: of them, those to
// the same instance that could not be made are replaced.
func bindableOnceMore(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance, app *cf.App, strategy string) error {
	have, err := store.ServiceBindings.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	same := control.Without(have, func(old *cf.ServiceBinding) bool { return old.InstanceGUID != i.GUID })
	valid := 0
	for _, old := range same {
		if old.LastOperation.Is(cf.OpCreate, cf.OpFailed) {
			err = ReplaceBinding(c, old, i)
		} else {
			err = conflict(c, old, b)
			valid++
		}
		if err != nil {
			return err
		}
	}
	most := c.Platform.MaxBindings()
	switch {
	case strategy == multiple && valid >= most:
		return cf.Unprocessable("The app has too many bindings to this service instance (limit: %d). Consider deleting existing/orphaned bindings.", most)
	case strategy != multiple && valid > 0:
		return alreadyBound()
	}
	return bindingNameFree(have, b)
}

// conflict refuses a second binding to the same instance that the first forbids.
func conflict(c *control.Session, old, b *cf.ServiceBinding) error {
	op, once := old.LastOperation, c.Platform.MaxBindings() == 1
	switch {
	case once && op.Type == cf.OpCreate && op.State != cf.OpFailed:
		return alreadyBound()
	case op.Is(cf.OpCreate, cf.OpInitial, cf.OpInProgress):
		return cf.Unprocessable("There is already a binding in progress for this service instance and app (binding guid: %s)", old.GUID)
	case op.Type == cf.OpDelete && once:
		return cf.Unprocessable("The binding is getting deleted or its deletion failed")
	case op.Type == cf.OpDelete:
		return cf.Unprocessable("A binding for this service instance and app is getting deleted or its deletion failed")
	case (old.Name == nil) != (b.Name == nil) || b.Name != nil && *old.Name != *b.Name:
		return cf.Unprocessable("The binding name cannot be changed for the same app and service instance")
	}
	return nil
}

func alreadyBound() error {
	return cf.Unprocessable("The app is already bound to the service instance")
}

// bindingNameFree refuses a name that a binding of the app to another instance
// has.
func bindingNameFree(have []*cf.ServiceBinding, b *cf.ServiceBinding) error {
	const taken = "The binding name is invalid. Binding names must be unique for a given service instance and app."
	for _, old := range have {
		switch {
		case old.InstanceGUID == b.InstanceGUID || b.Name == nil || old.Name == nil || *old.Name != *b.Name:
		case *b.Name == "":
			return cf.Unprocessable(taken)
		default:
			return cf.Unprocessable(taken+" The app already has a binding with name '%s'.", *b.Name)
		}
	}
	return nil
}

// bindingName is what Cloud Controller takes as the name of a binding.
var bindingName = pattern.Lazy(`\A[A-Za-z0-9_-]+\z`)

func bindingNameFault(name *string) error {
	switch {
	case name == nil || *name == "":
		return nil
	case len(*name) > 255:
		return cf.Unprocessable("The binding name is invalid. App binding names must be less than 256 characters.")
	case !bindingName().MatchString(*name):
		return cf.Unprocessable("The binding name is invalid. Valid characters are alphanumeric, underscore, and dash.")
	}
	return nil
}
