package services

import (
	"regexp"
	"slices"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// Multiple is the strategy by which an app has several bindings to one instance.
const Multiple = "multiple"

// BindApp binds an app: to what is user-provided at once; for a broker
// the binding stays initial.
func BindApp(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance, app *cf.App, strategy string) error {
	if app.SpaceGUID != i.SpaceGUID && !slices.Contains(i.SharedSpaces, app.SpaceGUID) {
		return cf.Unprocessable("The service instance and the app are in different spaces")
	}
	if err := Bindable(c, i, ""); err != nil {
		return err
	}
	if err := bindableOnceMore(c, b, i, app, strategy); err != nil {
		return err
	}
	if err := bindingNameFault(b.Name); err != nil {
		return err
	}
	b.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)
	if i.Type == cf.UserProvided {
		b.Credentials, b.SyslogDrainURL = i.Credentials, drainOf(i)
		b.LastOperation = Done(c, cf.OpCreate, "")
	}
	if err := store.ServiceBindings.Insert(c.Tx, b); err != nil {
		return err
	}
	// What a broker is asked for counts as if it had made it, but for the
	// credentials: server/broker looks at those.
	return fitOnce(c, app, TheApp, func(s cf.AppService) {
		if s.Binding.GUID == b.GUID {
			s.Binding.LastOperation = Done(c, cf.OpCreate, "")
		}
	})
}

// Bindable refuses a managed instance that cannot be bound now. end is what
// Cloud Controller ends its sentences about keys with.
func Bindable(c *control.Session, i *cf.ServiceInstance, end string) error {
	if i.Type != cf.Managed {
		return nil
	}
	o, err := OfferOf(c, i)
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
	valid := 0
	for _, old := range have {
		switch {
		case old.InstanceGUID != i.GUID:
			continue
		case old.LastOperation.Is(cf.OpCreate, cf.OpFailed):
			if err := ReplaceBinding(c, old, i); err != nil {
				return err
			}
			continue
		}
		if err := besides(c, old, b); err != nil {
			return err
		}
		valid++
	}
	most := c.Platform.MaxBindings()
	if strategy == Multiple && valid >= most {
		return cf.Unprocessable("The app has too many bindings to this service instance (limit: %d). Consider deleting existing/orphaned bindings.", most)
	}
	if strategy != Multiple && valid > 0 {
		return alreadyBound()
	}
	for _, old := range have {
		if old.InstanceGUID != i.GUID && b.Name != nil && old.Name != nil && *old.Name == *b.Name {
			return bindingNameUsed(*b.Name)
		}
	}
	return nil
}

// besides refuses a second binding to the same instance that the first forbids.
func besides(c *control.Session, old, b *cf.ServiceBinding) error {
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

func bindingNameUsed(name string) error {
	text := "The binding name is invalid. Binding names must be unique for a given service instance and app."
	if name != "" {
		text += " The app already has a binding with name '" + name + "'."
	}
	return cf.Unprocessable("%s", text)
}

// bindingName is what Cloud Controller takes as the name of a binding.
var bindingName = regexp.MustCompile(`\A[A-Za-z0-9_-]+\z`)

func bindingNameFault(name *string) error {
	switch {
	case name == nil || *name == "":
		return nil
	case len(*name) > 255:
		return cf.Unprocessable("The binding name is invalid. App binding names must be less than 256 characters.")
	case !bindingName.MatchString(*name):
		return cf.Unprocessable("The binding name is invalid. Valid characters are alphanumeric, underscore, and dash.")
	}
	return nil
}

// ReplaceBinding forgets a binding that could not be made, and has the broker
// forget it too.
func ReplaceBinding(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance) error {
	if i.Type == cf.Managed {
		if err := Abandon(c, i, b.GUID); err != nil {
			return err
		}
	}
	return store.ServiceBindings.Delete(c.Tx, b.GUID)
}

// KeyFree refuses a key whose name another of the instance has. One that could
// not be made is replaced.
func KeyFree(c *control.Session, i *cf.ServiceInstance, name string) error {
	const taken = "The binding name is invalid. Key binding names must be unique. The service instance already has a key binding with "
	if len(name) > 255 {
		return cf.Unprocessable("name max_length")
	}
	old, err := store.ServiceBindings.First(c.Tx, store.Query{Where: map[string][]string{"service_instance_guids": {i.GUID}, "type": {cf.BindingKey}, "names": {name}}})
	switch {
	case store.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case old.LastOperation.Is(cf.OpCreate, cf.OpFailed):
		return ReplaceBinding(c, old, i)
	case old.LastOperation.Type == cf.OpCreate:
		return cf.Unprocessable(taken+"name '%s'.", name)
	}
	return cf.Unprocessable(taken+"the name '%s' that is getting deleted or its deletion failed.", name)
}

// BindingSpace is the space of a binding: its app's, or of a key's instance.
func BindingSpace(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance) (*cf.Space, error) {
	guid := i.SpaceGUID
	if b.AppGUID != "" {
		app, err := store.Apps.Get(c.Tx, b.AppGUID)
		if err != nil {
			return nil, err
		}
		guid = app.SpaceGUID
	}
	return store.Spaces.Get(c.Tx, guid)
}

// NotMade tells why there is nothing to show of a binding yet, or any longer.
func NotMade(kind string, op cf.LastOperation) error {
	if op.Is(cf.OpCreate, cf.OpSucceeded) {
		return nil
	}
	what := map[string]string{cf.BindingApp: "service binding", cf.BindingKey: "service key", RouteKind: "route binding"}[kind]
	operation := "Deletion"
	if op.Type == cf.OpCreate {
		operation = "Creation"
	}
	return cf.Errorf(cf.ResourceNotFound, "%s of %s %s", operation, what, op.State)
}

// RouteKind is to route bindings what the types of cf.ServiceBinding are.
const RouteKind = "route"

// bindingEvents are how Cloud Controller's audit events call the bindings.
var bindingEvents = map[string]string{cf.BindingApp: "service_binding", cf.BindingKey: "service_key", RouteKind: "service_route_binding"}

// BindingEvent records an event of a credential binding, in its own space.
func BindingEvent(c *control.Session, what string, b *cf.ServiceBinding, i *cf.ServiceInstance, request audit.Data) error {
	space, err := BindingSpace(c, b, i)
	if err != nil {
		return err
	}
	name := ""
	if b.Name != nil {
		name = *b.Name
	}
	kind := bindingEvents[b.Type]
	return c.Audit(audit.Of(kind, what), audit.Target{Type: kind, GUID: b.GUID, Name: name, Place: access.At(space)}, audit.Data{"request": request})
}

// BindingIdle refuses to delete a binding while it, or its instance, changes.
func BindingIdle(op cf.LastOperation, i *cf.ServiceInstance) error {
	if op.Is(cf.OpCreate, cf.OpInitial) || op.Is(cf.OpDelete, cf.OpInitial, cf.OpInProgress) {
		return cf.Unprocessable("There is an operation in progress for the service binding.")
	}
	if i.Type == cf.Managed && i.LastOperation.InProgress() {
		return Busy()
	}
	return nil
}

// Unbind has the broker delete a binding, and gives the job that does it.
func Unbind(c *control.Session, b *cf.ServiceBinding) (*cf.Job, error) {
	b.LastOperation = cf.Begin(cf.OpDelete, cf.OpInProgress, c.Tx.Now)
	if err := store.ServiceBindings.Update(c.Tx, b); err != nil {
		return nil, err
	}
	operation := cf.JobDeleteBinding
	if b.Type == cf.BindingKey {
		operation = cf.JobDeleteKey
	}
	return NewJob(c, operation, CredentialBinding, b.GUID, cf.ServiceWork{})
}

// CredentialBinding is what jobs of credential bindings call them.
const CredentialBinding = "service_credential_binding"

// RemoveBinding forgets a binding. What runs of its app keeps what it got.
func RemoveBinding(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance) error {
	request := audit.Data{"app_guid": control.OrNil(b.AppGUID), "route_guid": nil, "service_instance_guid": b.InstanceGUID}
	if err := BindingEvent(c, "delete", b, i, request); err != nil {
		return err
	}
	return store.ServiceBindings.Delete(c.Tx, b.GUID)
}
