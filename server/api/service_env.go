package api

import (
	"encoding/json"

	"cupola/server/bindings"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// boundTo are the bindings of an app that count.
func (c *call) boundTo(app *cf.App) ([]bindings.Binding, error) {
	all, err := c.Tx.AppServices(app.GUID)
	return desire.Bindings(all[app.GUID]), err
}

// What of an app has to have room for its bindings, as Cloud Controller calls
// it.
const (
	theApp    = "app"
	ofTask    = "app task"
	ofStaging = "staging task"
)

// bindingsFit refuses bindings with which what is of the app could not be
// started.
func (c *call) bindingsFit(app *cf.App, what string) error {
	return c.bindingsFitOnce(app, what, func(cf.AppService) {})
}

// bindingsFitOnce is bindingsFit for bindings as they are once they have changed.
func (c *call) bindingsFitOnce(app *cf.App, what string, change func(cf.AppService)) error {
	all, err := c.Tx.AppServices(app.GUID)
	if err != nil {
		return err
	}
	for _, s := range all[app.GUID] {
		change(s)
	}
	if err := bindings.Fit(bindings.Form(app.BindingForm), desire.Bindings(all[app.GUID]), what); err != nil {
		return cf.Unprocessable("%s", err)
	}
	return nil
}

// nameFits refuses a name of an instance with which an app that is bound to it
// could not be started.
func (c *call) nameFits(i *cf.ServiceInstance, name string) error {
	bound, err := store.ServiceBindings.Where(c.Tx, map[string][]string{"service_instance_guids": {i.GUID}, "type": {cf.BindingApp}})
	if err != nil {
		return err
	}
	for _, b := range bound {
		app, err := store.Apps.Get(c.Tx, b.AppGUID)
		if err != nil {
			return err
		}
		err = c.bindingsFitOnce(app, theApp, func(s cf.AppService) {
			if s.Instance.GUID == i.GUID {
				s.Instance.Name = name
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// formFits is bindingsFit for an app that had its bindings in another form
// before.
func (c *call) formFits(app *cf.App, before string) error {
	if app.BindingForm == before {
		return nil
	}
	return c.bindingsFit(app, theApp)
}

// systemEnv is what of an app's environment the platform says of its services.
func (c *call) systemEnv(app *cf.App) (doc, error) {
	list, err := c.boundTo(app)
	if err != nil {
		return nil, err
	}
	if form := bindings.Form(app.BindingForm); form != bindings.FormNone {
		where := form.Variable()
		return doc{where.Name: where.Value}, nil
	}
	return doc{"VCAP_SERVICES": json.RawMessage(desire.VCAPServices(list))}, nil
}
