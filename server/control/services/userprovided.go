package services

import (
	"encoding/json"
	"net/url"
	"strings"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// UserProvidedChange changes a user-provided service instance.
type UserProvidedChange struct {
	Name        change.Field[string]          `json:"name"`
	Tags        change.Field[Tags]            `json:"tags"`
	Credentials change.Field[json.RawMessage] `json:"credentials"`
	DrainURL    change.Field[string]          `json:"syslog_drain_url"`
	RouteURL    change.Field[string]          `json:"route_service_url"`
	Metadata    *change.Metadata              `json:"metadata"`
}

// Validate lists what is wrong with a request alone.
func (r UserProvidedChange) Validate() []string {
	return userProvidedFaults(r.Credentials, r.DrainURL, r.RouteURL)
}

// userProvidedFaults are Cloud Controller's messages for what is wrong with
// what a user says of a service.
func userProvidedFaults(credentials change.Field[json.RawMessage], drain, route change.Field[string]) []string {
	return control.Must(isObject(credentials), "Credentials must be an object",
		drain.V == "" || isURI(drain.V), "Syslog drain url must be a valid URI",
		route.V == "" || isURI(route.V), "Route service url must be a valid URI",
		route.V == "" || strings.HasPrefix(route.V, "https:"), "Route service url must be https")
}

// apply changes what the request names.
func (r UserProvidedChange) apply(i *cf.ServiceInstance) error {
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
	return r.Metadata.Apply(&i.Metadata)
}

// UpdateUserProvided changes a user-provided service instance, and what is bound
// to it.
func UpdateUserProvided(c *control.Session, i *cf.ServiceInstance, req UserProvidedChange, request audit.Data) error {
	before := *i
	if err := req.apply(i); err != nil {
		return err
	}
	i.LastOperation = done(c, cf.OpUpdate, operationSucceeded)
	if err := save(c, i, store.ServiceInstances.Update); err != nil {
		return err
	}
	if err := passOn(c, i); err != nil {
		return err
	}
	return instanceEvent(c, audit.UserProvidedUpdate, &before, request)
}

// UserProvidedCredentials are what a user-provided service instance was given.
// That someone looked is recorded.
func UserProvidedCredentials(c *control.Session, guid string) (json.RawMessage, error) {
	i, err := store.ServiceInstances.Visible(c.Tx, guid, c.Scope)
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
	return i.Credentials, instanceEvent(c, audit.UserProvidedShow, i, nil)
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

// passOn gives what is bound to a user-provided service instance what the
// instance says now. What an app could not start with is refused.
func passOn(c *control.Session, i *cf.ServiceInstance) error {
	if err := store.ServiceBindings.PassOn(c.Tx, i.GUID, i.Credentials, drainOf(i)); err != nil {
		return err
	}
	if err := boundFit(c, i); err != nil {
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

// drainOf is the drain as bindings have it: commas would separate it from
// others.
func drainOf(i *cf.ServiceInstance) string { return strings.ReplaceAll(i.SyslogDrainURL, ",", "%2c") }

// done is an operation that succeeds where it begins, as it does with what is
// user-provided.
func done(c *control.Session, kind, description string) cf.LastOperation {
	o := cf.Begin(kind, cf.OpSucceeded, c.Tx.Now)
	o.Description = description
	return o
}

// operationSucceeded describes an operation on what is user-provided.
const operationSucceeded = "Operation succeeded"
