package services

import (
	"cupola/server/bindings"
	"cupola/server/control"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// BoundTo are the bindings of an app that count.
func BoundTo(c *control.Session, app *cf.App) ([]bindings.Binding, error) {
	all, err := store.ServiceBindings.OfApps(c.Tx, app.GUID)
	return desire.Bindings(all[app.GUID]), err
}

// What of an app has to have room for its bindings, as Cloud Controller calls it.
const (
	TheApp    = "app"
	OfTask    = "app task"
	OfStaging = "staging task"
)

// Fit refuses bindings with which the app could not be
// started.
func Fit(c *control.Session, app *cf.App, what string) error {
	return fitOnce(c, app, what, func(cf.AppService) {})
}

// fitOnce is bindingsFit for bindings as they are once they have changed.
func fitOnce(c *control.Session, app *cf.App, what string, change func(cf.AppService)) error {
	all, err := store.ServiceBindings.OfApps(c.Tx, app.GUID)
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

// boundApps are the filters of the bindings of apps to an instance.
func boundApps(i *cf.ServiceInstance) map[string][]string {
	return map[string][]string{"service_instance_guids": {i.GUID}, "type": {cf.BindingApp}}
}

// nameFits refuses a name of an instance with which an app that is bound to it
// could not be started.
func nameFits(c *control.Session, i *cf.ServiceInstance, name string) error {
	bound, err := store.ServiceBindings.Where(c.Tx, boundApps(i))
	if err != nil {
		return err
	}
	for _, b := range bound {
		app, err := store.Apps.Get(c.Tx, b.AppGUID)
		if err != nil {
			return err
		}
		err = fitOnce(c, app, TheApp, func(s cf.AppService) {
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

// FormFits is bindingsFit for an app that had its bindings in another form
// before.
func FormFits(c *control.Session, app *cf.App, before string) error {
	if app.BindingForm == before {
		return nil
	}
	return Fit(c, app, TheApp)
}

// boundFit is bindingsFit for all apps that are bound to an instance, in a few
// statements however many they are.
func boundFit(c *control.Session, i *cf.ServiceInstance) error {
	bound, err := store.ServiceBindings.Where(c.Tx, boundApps(i))
	if err != nil {
		return err
	}
	apps, err := store.Apps.By(c.Tx, "guids", control.GUIDs(bound, func(b *cf.ServiceBinding) string { return b.AppGUID })...)
	if err != nil {
		return err
	}
	services, err := store.ServiceBindings.OfApps(c.Tx, control.GUIDs(apps, func(a *cf.App) string { return a.GUID })...)
	if err != nil {
		return err
	}
	for _, app := range apps {
		if err := bindings.Fit(bindings.Form(app.BindingForm), desire.Bindings(services[app.GUID]), TheApp); err != nil {
			return cf.Unprocessable("%s", err)
		}
	}
	return nil
}
