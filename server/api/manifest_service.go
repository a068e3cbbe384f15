package api

import (
	"encoding/json"
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/services"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

const jobApplyManifest = "space.apply_manifest"

// awaited is a binding that a job waits for: the broker has to make it.
type awaited struct {
	Binding, App, Service string // a GUID, and two names
}

// applyServices binds an app to the service instances that its manifest names
// and it is not bound to.
func (c *call) applyServices(app *cf.App, m *manifest.App) error {
	for _, s := range m.Services {
		i, err := c.serviceNamed(app, s.Name)
		if err != nil {
			return err
		}
		if err := c.applyService(app, i, s); err != nil {
			return forService(i.Name, err)
		}
	}
	return nil
}

// serviceNamed is a service instance of an app's space, or one that is shared
// with it.
func (c *call) serviceNamed(app *cf.App, name string) (*cf.ServiceInstance, error) {
	i, err := store.ServiceInstances.First(c.Tx, store.Query{Where: map[string][]string{"names": {name}, "space_guids": {app.SpaceGUID}}})
	return i, control.Unprocessable(err, "Service instance '%s' not found", name)
}

// forService has a 422 name the service that it is about.
func forService(name string, err error) error {
	if control.IsKind(err, cf.UnprocessableEntity) {
		return cf.Unprocessable("For service '%s': %s", name, err)
	}
	return err
}

func (c *call) applyService(app *cf.App, i *cf.ServiceInstance, s manifest.Service) error {
	have, _, err := store.ServiceBindings.List(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "service_instance_guids": {i.GUID}}, Order: "created_at", Desc: true})
	if err != nil {
		return err
	}
	if len(have) > 0 {
		switch op := have[0].LastOperation; {
		case op.Is(cf.OpCreate, cf.OpSucceeded):
			return nil
		case op.InProgress():
			return cf.Unprocessable("A binding is being %sd. Retry this operation later.", op.Type)
		case op.Is(cf.OpDelete, cf.OpFailed):
			return cf.Unprocessable("A binding failed to be deleted. Resolve the issue with this binding before retrying this operation.")
		}
	}
	if s.Parameters != nil && i.Type == cf.UserProvided {
		return cf.Unprocessable("Binding parameters are not supported for user-provided service instances")
	}
	b := &cf.ServiceBinding{Type: cf.BindingApp, Name: s.BindingName, InstanceGUID: i.GUID, AppGUID: app.GUID}
	if err := services.BindApp(c.Session, b, i, app, ""); err != nil {
		return err
	}
	request := doc{"type": b.Type, "name": b.Name, "relationships": doc{"app": audit.Relation(app.GUID), "service_instance": audit.Relation(i.GUID)}}
	if i.Type == cf.UserProvided {
		return services.BindingEvent(c.Session, "create", b, i, request)
	}
	return c.bindFromManifest(b, app, i, s, request)
}

// bindFromManifest has the broker make a binding that the manifest's job waits
// for.
func (c *call) bindFromManifest(b *cf.ServiceBinding, app *cf.App, i *cf.ServiceInstance, s manifest.Service, request doc) error {
	work := cf.ServiceWork{Request: request}
	if s.Parameters != nil {
		text, err := json.Marshal(s.Parameters)
		if err != nil {
			return cf.Unprocessable("Parameters must be an object")
		}
		work.Parameters, request["parameters"] = text, audit.Hidden
	}
	j, err := services.NewJob(c.Session, cf.JobCreateBinding, services.CredentialBinding, b.GUID, work)
	if err != nil {
		return err
	}
	c.awaited = append(c.awaited, awaited{b.GUID, app.Name, i.Name})
	return store.Jobs.Insert(c.Tx, j)
}

// manifestServices names the service instances that an app is bound to.
func (c *call) manifestServices(m map[string]any, app *cf.App) error {
	bound, err := c.Tx.AppServices(app.GUID)
	if err != nil {
		return err
	}
	var names []string
	for _, s := range bound[app.GUID] {
		names = append(names, s.Instance.Name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	if names = slices.Compact(names); names != nil {
		m["services"] = anyList(names)
	}
	return nil
}

// bindingsMade tells whether all that a manifest's job waits for is made, and why
// not.
func (c *call) bindingsMade(list []awaited) (done bool, fault *cf.Error, err error) {
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
