package manifests

import (
	"encoding/json"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/services"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// applyServices binds an app to the service instances that its manifest names
// and it is not bound to.
func applyServices(c *control.Session, app *cf.App, m *manifest.App) error {
	for _, s := range m.Services {
		i, err := serviceNamed(c, app, s.Name)
		if err != nil {
			return err
		}
		if err := applyService(c, app, i, s); err != nil {
			return forService(i.Name, err)
		}
	}
	return nil
}

// serviceNamed is a service instance of an app's space, or one that is shared
// with it.
func serviceNamed(c *control.Session, app *cf.App, name string) (*cf.ServiceInstance, error) {
	i, err := store.ServiceInstances.First(c.Tx, store.Query{Where: map[string][]string{"names": {name}, "space_guids": {app.SpaceGUID}}})
	if store.IsNotFound(err) {
		err = cf.Errorf(cf.ResourceNotFound, "Service instance '%s' not found", name)
	}
	return i, err
}

// forService has a 422 name the service that it is about.
func forService(name string, err error) error {
	if control.IsKind(err, cf.UnprocessableEntity) {
		return cf.Unprocessable("For service '%s': %s", name, err)
	}
	return err
}

func applyService(c *control.Session, app *cf.App, i *cf.ServiceInstance, s manifest.Service) error {
	have, err := store.ServiceBindings.Matching(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "service_instance_guids": {i.GUID}}, Order: "created_at", Desc: true})
	if err != nil {
		return err
	}
	if len(have) > 0 {
		if done, err := boundBy(have[0].LastOperation); done || err != nil {
			return err
		}
	}
	if err := services.ParametersTaken(i, s.Parameters != nil); err != nil {
		return err
	}
	b := &cf.ServiceBinding{Type: cf.BindingApp, Name: s.BindingName, InstanceGUID: i.GUID, AppGUID: app.GUID}
	if err := services.BindApp(c, b, i, app, ""); err != nil {
		return err
	}
	request := audit.Data{"type": b.Type, "name": b.Name, "parameters": nil, "relationships": audit.Data{"app": audit.Relation(app.GUID), "service_instance": audit.Relation(i.GUID)}}
	if i.Type == cf.UserProvided {
		return services.BindingEvent(c, "create", b, i, request)
	}
	return bind(c, b, app, i, s, request)
}

// boundBy reports whether the newest binding does, by its last operation, and
// refuses to add to one that may come or go.
func boundBy(op cf.LastOperation) (done bool, err error) {
	switch {
	case op.Is(cf.OpCreate, cf.OpSucceeded):
		return true, nil
	case op.InProgress():
		return false, cf.Unprocessable("A binding is being %sd. Retry this operation later.", op.Type)
	case op.Is(cf.OpDelete, cf.OpFailed):
		return false, cf.Unprocessable("A binding failed to be deleted. Resolve the issue with this binding before retrying this operation.")
	}
	return false, nil
}

// bind asks the broker for a binding. The manifest's job waits for it.
func bind(c *control.Session, b *cf.ServiceBinding, app *cf.App, i *cf.ServiceInstance, s manifest.Service, request audit.Data) error {
	work := cf.ServiceWork{Request: request}
	if s.Parameters != nil {
		text, err := json.Marshal(s.Parameters)
		if err != nil {
			return cf.Unprocessable("Parameters must be an object")
		}
		work.Parameters, request["parameters"] = text, audit.Hidden
	}
	c.Awaited = append(c.Awaited, control.Awaited{Binding: b.GUID, App: app.Name, Service: i.Name})
	_, err := services.Ask(c, cf.JobCreateBinding, services.CredentialBinding, b.GUID, work)
	return err
}

// BindingsMade reports whether all that a manifest's job waits for is made, and why
// not.
func BindingsMade(c *control.Session, list []control.Awaited) (done bool, fault *cf.Error, err error) {
	for _, a := range list {
		b, err := store.ServiceBindings.Get(c.Tx, a.Binding)
		failed := ""
		switch {
		case store.IsNotFound(err):
			failed = "the binding was deleted"
		case err != nil:
			return false, nil, err
		case b.LastOperation.State == cf.OpFailed, b.LastOperation.Type == cf.OpDelete:
			failed = b.LastOperation.Description
		case b.LastOperation.InProgress():
			return false, nil, nil
		}
		if failed != "" {
			return false, cf.Unprocessable("For application '%s': For service '%s': %s", a.App, a.Service, failed), nil
		}
	}
	return true, nil, nil
}
