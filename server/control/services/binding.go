package services

import (
	"encoding/json"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// CredentialBinding is what jobs of credential bindings call them.
const CredentialBinding = "service_credential_binding"

// NewBinding is a binding of an app, or a key, to be made.
type NewBinding struct {
	Type          string                        `json:"type"`
	Name          change.Field[string]          `json:"name"`
	Strategy      change.Field[string]          `json:"strategy"`
	Parameters    change.Field[json.RawMessage] `json:"parameters"`
	Metadata      *change.Metadata              `json:"metadata"`
	Relationships struct {
		App      *change.ToOne `json:"app"`
		Instance *change.ToOne `json:"service_instance"`
	} `json:"relationships"`
}

// Validate lists what is wrong with a request alone.
func (r NewBinding) Validate() []string {
	messages := control.Must(isObject(r.Parameters), "Parameters must be an object", r.Type == cf.BindingApp || r.Type == cf.BindingKey, "Type must be 'app' or 'key'")
	messages = append(messages, relationFaults(r.Relationships.Instance, "service_instance")...)
	switch {
	case len(messages) > 0:
		return messages
	case r.Type == cf.BindingKey:
		return control.Must(r.Name.V != "", "Name can't be blank", r.Relationships.App == nil, "Relationships Unknown field(s): 'app'")
	}
	return append(control.Must(r.Strategy.Or(single) == single || r.Strategy.V == multiple, "Strategy must be 'single' or 'multiple'"),
		relationFaults(r.Relationships.App, "app")...)
}

// CreateBinding binds an app, or makes a key, by the job that is returned where a
// broker is asked.
func CreateBinding(c *control.Session, req NewBinding, request audit.Data) (*cf.ServiceBinding, *cf.Job, error) {
	c.Checked = true // until the instance is found, there is no place
	guid := req.Relationships.Instance.GUID()
	i, err := store.ServiceInstances.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, nil, control.Unprocessable(err, "The service instance could not be found: '%s'", guid)
	}
	if err := ParametersTaken(i, req.Parameters.Set); err != nil {
		return nil, nil, err
	}
	b, create, operation := &cf.ServiceBinding{Type: req.Type, InstanceGUID: i.GUID}, createAppBinding, cf.JobCreateBinding
	if req.Name.Set && !req.Name.Null {
		b.Name = &req.Name.V
	}
	if req.Type == cf.BindingKey {
		create, operation = createKey, cf.JobCreateKey
	}
	if err := create(c, b, i, req); err != nil {
		return nil, nil, err
	}
	if i.Type == cf.UserProvided {
		return b, nil, BindingEvent(c, "create", b, i, request)
	}
	j, err := Ask(c, operation, CredentialBinding, b.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: request})
	return b, j, err
}

// findBinding is a binding with its instance, if the actor sees it.
func findBinding(c *control.Session, guid string) (*cf.ServiceBinding, *cf.ServiceInstance, error) {
	b, err := store.ServiceBindings.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, nil, err
	}
	i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
	return b, i, err
}

// BindingDetails is a binding with its credentials. For users who may not see
// them it does not exist. Each look is recorded as an audit event.
func BindingDetails(c *control.Session, guid string) (*cf.ServiceBinding, error) {
	b, i, err := findBinding(c, guid)
	if err != nil {
		return nil, err
	}
	space, err := bindingSpace(c, b, i)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(c.Rule, access.At(space)) {
		return nil, cf.Errorf(cf.ResourceNotFound, "Service credential binding not found")
	}
	if err := notMade(b.Type, b.LastOperation); err != nil {
		return nil, err
	}
	request := audit.Data{"service_instance_guid": b.InstanceGUID}
	if b.AppGUID != "" {
		request["app_guid"] = b.AppGUID
	}
	return b, BindingEvent(c, "show", b, i, request)
}

// permitted is findBinding for one who satisfies the rule at the binding's space.
func permitted(c *control.Session, guid string) (*cf.ServiceBinding, *cf.ServiceInstance, *cf.Space, error) {
	b, i, err := findBinding(c, guid)
	if err != nil {
		return nil, nil, nil, err
	}
	space, err := bindingSpace(c, b, i)
	if err != nil {
		return nil, nil, nil, err
	}
	return b, i, space, c.Permit(access.At(space))
}

// BindingToChange is a binding that the actor may change.
func BindingToChange(c *control.Session, guid string) (*cf.ServiceBinding, error) {
	b, _, _, err := permitted(c, guid)
	if err == nil && b.LastOperation.Is(cf.OpDelete, cf.OpInitial, cf.OpInProgress) {
		err = cf.Unprocessable("The service binding is being deleted")
	}
	return b, err
}

// RelabelBinding changes labels and annotations of a binding.
func RelabelBinding(c *control.Session, b *cf.ServiceBinding, req change.Labels, request audit.Data) error {
	i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
	if err != nil {
		return err
	}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return err
	}
	if err := store.ServiceBindings.Update(c.Tx, b); err != nil {
		return err
	}
	return BindingEvent(c, "update", b, i, request)
}

// bindingSpace is the space of a binding: its app's, or of a key's instance.
func bindingSpace(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance) (*cf.Space, error) {
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

// notMade tells why there is nothing to show of a binding yet, or any longer.
func notMade(kind string, op cf.LastOperation) error {
	if op.Is(cf.OpCreate, cf.OpSucceeded) {
		return nil
	}
	what := map[string]string{cf.BindingApp: "service binding", cf.BindingKey: "service key", routeKind: "route binding"}[kind]
	operation := "Deletion"
	if op.Type == cf.OpCreate {
		operation = "Creation"
	}
	return cf.Errorf(cf.ResourceNotFound, "%s of %s %s", operation, what, op.State)
}

// routeKind is to route bindings what the types of cf.ServiceBinding are.
const routeKind = "route"

// bindingEvents are how Cloud Controller's audit events call the bindings.
var bindingEvents = map[string]string{cf.BindingApp: "service_binding", cf.BindingKey: "service_key", routeKind: "service_route_binding"}

// BindingEvent records an event of a credential binding, in its own space.
func BindingEvent(c *control.Session, what string, b *cf.ServiceBinding, i *cf.ServiceInstance, request audit.Data) error {
	space, err := bindingSpace(c, b, i)
	if err != nil {
		return err
	}
	name := ""
	if b.Name != nil {
		name = *b.Name
	}
	kind := bindingEvents[b.Type]
	return c.Audit(audit.Of(kind, what), audit.Target{Type: kind, GUID: b.GUID, Name: name, Place: access.At(space)}, c.Request(request))
}

// DeleteBinding deletes a binding, by the job that is returned where a broker is
// asked.
func DeleteBinding(c *control.Session, guid string) (*cf.Job, error) {
	b, i, space, err := permitted(c, guid)
	if err != nil {
		return nil, err
	}
	if b.Type == cf.BindingKey && !c.MayDevelop(space) {
		return nil, access.NotAuthorized()
	}
	if err := BindingIdle(b.LastOperation, i); err != nil {
		return nil, err
	}
	if i.Type == cf.Managed {
		return Unbind(c, b)
	}
	return nil, RemoveBinding(c, b, i)
}

// BindingIdle refuses to delete a binding while it, or its instance, changes.
func BindingIdle(op cf.LastOperation, i *cf.ServiceInstance) error {
	if op.Is(cf.OpCreate, cf.OpInitial) || op.Is(cf.OpDelete, cf.OpInitial, cf.OpInProgress) {
		return cf.Unprocessable("There is an operation in progress for the service binding.")
	}
	if i.Type == cf.Managed && i.LastOperation.InProgress() {
		return busy()
	}
	return nil
}

// Unbind adds the job that has the broker delete a binding.
func Unbind(c *control.Session, b *cf.ServiceBinding) (*cf.Job, error) {
	b.LastOperation = cf.Begin(cf.OpDelete, cf.OpInProgress, c.Tx.Now)
	if err := store.ServiceBindings.Update(c.Tx, b); err != nil {
		return nil, err
	}
	operation := cf.JobDeleteBinding
	if b.Type == cf.BindingKey {
		operation = cf.JobDeleteKey
	}
	return Ask(c, operation, CredentialBinding, b.GUID, cf.ServiceWork{})
}

// RemoveBinding forgets a binding. What runs of its app keeps what it got.
func RemoveBinding(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance) error {
	request := audit.Data{"app_guid": control.OrNil(b.AppGUID), "route_guid": nil, "service_instance_guid": b.InstanceGUID}
	if err := BindingEvent(c, "delete", b, i, request); err != nil {
		return err
	}
	return store.ServiceBindings.Delete(c.Tx, b.GUID)
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

// Abandon makes the broker forget an instance, or a binding of it, that it may
// have made though it reported failure to the platform.
func Abandon(c *control.Session, i *cf.ServiceInstance, binding string) error {
	o, err := offerOf(c, i)
	if err != nil {
		return err
	}
	return store.BrokerOperations.Insert(c.Tx, &cf.BrokerOperation{Phase: cf.PhaseSend, DueAt: c.Tx.Now, Orphan: &cf.Orphan{BrokerGUID: o.Broker.GUID,
		OfferingID: o.Offering.CatalogID, PlanID: o.Plan.CatalogID, InstanceGUID: i.GUID, BindingGUID: binding}})
}
