package api

import (
	"encoding/json"
	"regexp"
	"slices"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

// bindingRequest is a request to bind an app, or for a key.
type bindingRequest struct {
	Type          string               `json:"type"`
	Name          opt[string]          `json:"name"`
	Strategy      opt[string]          `json:"strategy"`
	Parameters    opt[json.RawMessage] `json:"parameters"`
	Metadata      *metadataPatch       `json:"metadata"`
	Relationships struct {
		App      *ref `json:"app"`
		Instance *ref `json:"service_instance"`
	} `json:"relationships"`
}

const strategyMultiple = "multiple"

func (r bindingRequest) validate() []string {
	messages := control.Must(isObject(r.Parameters), "Parameters must be an object", r.Type == cf.BindingApp || r.Type == cf.BindingKey, "Type must be 'app' or 'key'")
	messages = append(messages, relationFaults(r.Relationships.Instance, "service_instance")...)
	switch {
	case len(messages) > 0:
		return messages
	case r.Type == cf.BindingKey:
		return control.Must(r.Name.V != "", "Name can't be blank", r.Relationships.App == nil, "Relationships Unknown field(s): 'app'")
	}
	s := r.Strategy
	return append(control.Must(!s.Set || s.Null || s.V == "single" || s.V == strategyMultiple, "Strategy must be 'single' or 'multiple'"),
		relationFaults(r.Relationships.App, "app")...)
}

// name is the binding's; nil for none.
func (r bindingRequest) name() *string {
	if !r.Name.Set || r.Name.Null {
		return nil
	}
	return &r.Name.V
}

func createServiceBinding(c *call) (*response, error) {
	var req bindingRequest
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	c.Checked = true // until the instance is found, there is no place
	guid := req.Relationships.Instance.guid()
	i, err := store.ServiceInstances.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, control.Unprocessable(err, "The service instance could not be found: '%s'", guid)
	}
	if i.Type == cf.UserProvided && req.Parameters.Set {
		return nil, cf.Unprocessable("Binding parameters are not supported for user-provided service instances")
	}
	if req.Type == cf.BindingKey {
		return c.createKey(i, req, audited)
	}
	return c.createAppBinding(i, req, audited)
}

func (c *call) createAppBinding(i *cf.ServiceInstance, req bindingRequest, audited doc) (*response, error) {
	guid := req.Relationships.App.guid()
	app, err := store.Apps.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, control.Unprocessable(err, "The app could not be found: '%s'", guid)
	}
	if _, err := c.InSpace(app.SpaceGUID); err != nil {
		return nil, err
	}
	b := &cf.ServiceBinding{Type: cf.BindingApp, Name: req.name(), InstanceGUID: i.GUID, AppGUID: app.GUID}
	if err := req.Metadata.apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := c.insertAppBinding(b, i, app, req.Strategy.V); err != nil {
		return nil, err
	}
	if i.Type == cf.Managed {
		return c.serviceJob(cf.JobCreateBinding, credentialBinding, b.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: audited})
	}
	return &response{status: 201, body: viewServiceBinding(c, b)}, c.bindingEvent("create", b, i, audited)
}

// insertAppBinding binds an app: to what is user-provided at once; for a broker
// the binding stays initial.
func (c *call) insertAppBinding(b *cf.ServiceBinding, i *cf.ServiceInstance, app *cf.App, strategy string) error {
	if app.SpaceGUID != i.SpaceGUID && !slices.Contains(i.SharedSpaces, app.SpaceGUID) {
		return cf.Unprocessable("The service instance and the app are in different spaces")
	}
	if err := c.bindable(i, ""); err != nil {
		return err
	}
	if err := c.bindableOnceMore(b, i, app, strategy); err != nil {
		return err
	}
	if err := bindingNameFault(b.Name); err != nil {
		return err
	}
	b.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)
	if i.Type == cf.UserProvided {
		b.Credentials, b.SyslogDrainURL = i.Credentials, drainOf(i)
		b.LastOperation = c.done(cf.OpCreate, "")
	}
	if err := store.ServiceBindings.Insert(c.Tx, b); err != nil {
		return err
	}
	// What a broker is asked for counts as if it had made it, but for the
	// credentials: server/broker looks at those.
	return c.bindingsFitOnce(app, theApp, func(s cf.AppService) {
		if s.Binding.GUID == b.GUID {
			s.Binding.LastOperation = c.done(cf.OpCreate, "")
		}
	})
}

// bindable refuses a managed instance that cannot be bound now. end is what
// Cloud Controller ends its sentences about keys with.
func (c *call) bindable(i *cf.ServiceInstance, end string) error {
	if i.Type != cf.Managed {
		return nil
	}
	o, err := c.offerOf(i)
	if err != nil {
		return err
	}
	switch {
	case !o.plan.MayBind(o.offering):
		return cf.Unprocessable("Service plan does not allow bindings%s", end)
	case o.offering.Needs(cf.RequiresVolumes) && !c.Platform.Mounts(o.offering.BrokerGUID):
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
func (c *call) bindableOnceMore(b *cf.ServiceBinding, i *cf.ServiceInstance, app *cf.App, strategy string) error {
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
			if err := c.replaceBinding(old, i); err != nil {
				return err
			}
			continue
		}
		if err := c.besides(old, b); err != nil {
			return err
		}
		valid++
	}
	most := c.Platform.MaxBindings()
	if strategy == strategyMultiple && valid >= most {
		return cf.Unprocessable("The app has too many bindings to this service instance (limit: %d). Consider deleting existing/orphaned bindings.", most)
	}
	if strategy != strategyMultiple && valid > 0 {
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
func (c *call) besides(old, b *cf.ServiceBinding) error {
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

// replaceBinding forgets a binding that could not be made, and has the broker
// forget it too.
func (c *call) replaceBinding(b *cf.ServiceBinding, i *cf.ServiceInstance) error {
	if i.Type == cf.Managed {
		if err := c.abandon(i, b.GUID); err != nil {
			return err
		}
	}
	return store.ServiceBindings.Delete(c.Tx, b.GUID)
}

// createKey has a broker make a key.
func (c *call) createKey(i *cf.ServiceInstance, req bindingRequest, audited doc) (*response, error) {
	space, err := c.InSpace(i.SpaceGUID)
	if err != nil {
		return nil, err
	}
	if !c.MayDevelop(space) {
		return nil, access.NotAuthorized()
	}
	if i.Type != cf.Managed {
		return nil, cf.Unprocessable("Service credential bindings of type 'key' are not supported for user-provided service instances.")
	}
	if err := c.bindable(i, "."); err != nil {
		return nil, err
	}
	if err := c.keyFree(i, req.Name.V); err != nil {
		return nil, err
	}
	b := &cf.ServiceBinding{Type: cf.BindingKey, Name: req.name(), InstanceGUID: i.GUID, LastOperation: cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)}
	if err := req.Metadata.apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := quota.Within(c.Tx, space.GUID, quota.Services, func() error { return store.ServiceBindings.Insert(c.Tx, b) }); err != nil {
		return nil, err
	}
	return c.serviceJob(cf.JobCreateKey, credentialBinding, b.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: audited})
}

// keyFree refuses a key whose name another of the instance has. One that could
// not be made is replaced.
func (c *call) keyFree(i *cf.ServiceInstance, name string) error {
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
		return c.replaceBinding(old, i)
	case old.LastOperation.Type == cf.OpCreate:
		return cf.Unprocessable(taken+"name '%s'.", name)
	}
	return cf.Unprocessable(taken+"the name '%s' that is getting deleted or its deletion failed.", name)
}
