package api

import (
	"encoding/json"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// bindingRequest is a request to bind an app, or for a key.
type bindingRequest struct {
	Type          string                        `json:"type"`
	Name          change.Field[string]          `json:"name"`
	Strategy      change.Field[string]          `json:"strategy"`
	Parameters    change.Field[json.RawMessage] `json:"parameters"`
	Metadata      *change.Metadata              `json:"metadata"`
	Relationships struct {
		App      *ref `json:"app"`
		Instance *ref `json:"service_instance"`
	} `json:"relationships"`
}

func (r bindingRequest) Validate() []string {
	messages := control.Must(isObject(r.Parameters), "Parameters must be an object", r.Type == cf.BindingApp || r.Type == cf.BindingKey, "Type must be 'app' or 'key'")
	messages = append(messages, relationFaults(r.Relationships.Instance, "service_instance")...)
	switch {
	case len(messages) > 0:
		return messages
	case r.Type == cf.BindingKey:
		return control.Must(r.Name.V != "", "Name can't be blank", r.Relationships.App == nil, "Relationships Unknown field(s): 'app'")
	}
	s := r.Strategy
	return append(control.Must(!s.Set || s.Null || s.V == "single" || s.V == services.Multiple, "Strategy must be 'single' or 'multiple'"),
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
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := services.BindApp(c.Session, b, i, app, req.Strategy.V); err != nil {
		return nil, err
	}
	if i.Type == cf.Managed {
		return c.serviceJob(cf.JobCreateBinding, services.CredentialBinding, b.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: audited})
	}
	return &response{status: 201, body: viewServiceBinding(c, b)}, services.BindingEvent(c.Session, "create", b, i, audited)
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
	if err := services.Bindable(c.Session, i, "."); err != nil {
		return nil, err
	}
	if err := services.KeyFree(c.Session, i, req.Name.V); err != nil {
		return nil, err
	}
	b := &cf.ServiceBinding{Type: cf.BindingKey, Name: req.name(), InstanceGUID: i.GUID, LastOperation: cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := quota.Within(c.Session, space.GUID, quota.Services, func() error { return store.ServiceBindings.Insert(c.Tx, b) }); err != nil {
		return nil, err
	}
	return c.serviceJob(cf.JobCreateKey, services.CredentialBinding, b.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: audited})
}
