package api

import (
	"encoding/json"
	"net/url"
	"strings"

	"cupola/server/bindings"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// userProvidedFaults are Cloud Controller's messages for what is wrong with
// what a user says of a service.
func userProvidedFaults(credentials opt[json.RawMessage], drain, route opt[string]) []string {
	return control.Must(isObject(credentials), "Credentials must be an object",
		drain.V == "" || isURI(drain.V), "Syslog drain url must be a valid URI",
		route.V == "" || isURI(route.V), "Route service url must be a valid URI",
		route.V == "" || strings.HasPrefix(route.V, "https:"), "Route service url must be https")
}

func (c *call) createUserProvided(i *cf.ServiceInstance, req serviceRequest, audited doc) (*response, error) {
	i.Credentials = objectOf(req.Credentials)
	i.SyslogDrainURL, i.RouteServiceURL = req.DrainURL.V, req.RouteURL.V
	i.LastOperation = c.done(cf.OpCreate, operationSucceeded)
	if err := routeServiceFault(i.RouteServiceURL); err != nil {
		return nil, err
	}
	if err := c.saveServiceInstance(i, store.ServiceInstances.Insert); err != nil {
		return nil, err
	}
	if err := c.serviceEvent(audit.UserProvidedCreate, i, audited); err != nil {
		return nil, err
	}
	return created(viewServiceInstance(c, i))
}

// objectOf is a JSON object that a request gives; nil of none and null.
func objectOf(v opt[json.RawMessage]) json.RawMessage {
	if !v.Set || v.Null {
		return nil
	}
	return v.V
}

// routeServiceFault refuses a route service's URL that names no host.
func routeServiceFault(raw string) error {
	if raw == "" {
		return nil
	}
	if u, err := url.Parse(raw); err != nil || u.Hostname() == "" || strings.HasPrefix(u.Hostname(), ".") {
		return cf.Unprocessable("service_instance route_service_url_invalid")
	}
	return nil
}

// userProvidedChange is a request to change a user-provided service instance.
type userProvidedChange struct {
	Name        opt[string]          `json:"name"`
	Tags        opt[tagList]         `json:"tags"`
	Credentials opt[json.RawMessage] `json:"credentials"`
	DrainURL    opt[string]          `json:"syslog_drain_url"`
	RouteURL    opt[string]          `json:"route_service_url"`
	Metadata    *metadataPatch       `json:"metadata"`
}

func (r userProvidedChange) validate() []string {
	return userProvidedFaults(r.Credentials, r.DrainURL, r.RouteURL)
}

// apply changes what the request names.
func (r userProvidedChange) apply(i *cf.ServiceInstance) error {
	if r.Name.Set {
		i.Name = r.Name.V
	}
	if r.Tags.Set {
		i.Tags = r.Tags.V
	}
	if r.Credentials.Set {
		i.Credentials = objectOf(r.Credentials)
	}
	if r.DrainURL.Set {
		i.SyslogDrainURL = r.DrainURL.V
	}
	if r.RouteURL.Set {
		i.RouteServiceURL = r.RouteURL.V
	}
	if err := routeServiceFault(i.RouteServiceURL); err != nil {
		return err
	}
	return r.Metadata.apply(&i.Metadata)
}

func (c *call) updateUserProvided(i *cf.ServiceInstance) (*response, error) {
	var req userProvidedChange
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	before := *i
	if err := req.apply(i); err != nil {
		return nil, err
	}
	i.LastOperation = c.done(cf.OpUpdate, operationSucceeded)
	if err := c.saveServiceInstance(i, store.ServiceInstances.Update); err != nil {
		return nil, err
	}
	if err := c.passOn(i); err != nil {
		return nil, err
	}
	if err := c.serviceEvent(audit.UserProvidedUpdate, &before, audited); err != nil {
		return nil, err
	}
	return ok(viewServiceInstance(c, i))
}

// passOn gives what is bound to a user-provided service instance what the
// instance says now. What an app could not start with is refused.
func (c *call) passOn(i *cf.ServiceInstance) error {
	if err := c.Tx.PassOnCredentials(i.GUID, i.Credentials, drainOf(i)); err != nil {
		return err
	}
	if err := c.boundFit(i); err != nil {
		return err
	}
	routes, err := store.RouteBindings.By(c.Tx, "service_instance_guids", i.GUID)
	if err != nil || i.RouteServiceURL == "" {
		return err
	}
	for _, b := range routes {
		b.RouteServiceURL = i.RouteServiceURL
		if err := store.RouteBindings.Update(c.Tx, b); err != nil {
			return err
		}
	}
	return nil
}

// boundFit is bindingsFit for all apps that are bound to an instance, in a few
// statements however many they are.
func (c *call) boundFit(i *cf.ServiceInstance) error {
	bound, err := store.ServiceBindings.Where(c.Tx, map[string][]string{"service_instance_guids": {i.GUID}, "type": {cf.BindingApp}})
	if err != nil {
		return err
	}
	apps, err := store.Apps.By(c.Tx, "guids", control.GUIDs(bound, func(b *cf.ServiceBinding) string { return b.AppGUID })...)
	if err != nil {
		return err
	}
	services, err := c.Tx.AppServices(control.GUIDs(apps, func(a *cf.App) string { return a.GUID })...)
	if err != nil {
		return err
	}
	for _, app := range apps {
		if err := bindings.Fit(bindings.Form(app.BindingForm), desire.Bindings(services[app.GUID]), theApp); err != nil {
			return cf.Unprocessable("%s", err)
		}
	}
	return nil
}

// drainOf is the drain as bindings have it: commas would separate it from
// others.
func drainOf(i *cf.ServiceInstance) string { return strings.ReplaceAll(i.SyslogDrainURL, ",", "%2c") }

// showServiceCredentials shows what a user-provided service instance was given.
// It is a writing transaction, since that someone looked is recorded.
func showServiceCredentials(c *call) (*response, error) {
	i, err := store.ServiceInstances.Visible(c.Tx, c.guid(), c.Scope)
	if err == nil && i.Type != cf.UserProvided {
		err = cf.Errorf(cf.ResourceNotFound, "Service instance not found")
	}
	if err != nil {
		return nil, err
	}
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(c.Rule, access.At(space)) {
		return nil, access.NotAuthorized()
	}
	if err := c.serviceEvent(audit.UserProvidedShow, i, nil); err != nil {
		return nil, err
	}
	return ok(orObject(i.Credentials))
}

// orObject is a JSON object, {} for none.
func orObject(text json.RawMessage) any {
	if len(text) == 0 {
		return doc{}
	}
	return text
}
