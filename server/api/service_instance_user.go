package api

import (
	"encoding/json"
	"strings"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// userProvidedFaults are Cloud Controller's messages for what is wrong with
// what a user says of a service.
func userProvidedFaults(credentials change.Field[json.RawMessage], drain, route change.Field[string]) []string {
	return control.Must(isObject(credentials), "Credentials must be an object",
		drain.V == "" || isURI(drain.V), "Syslog drain url must be a valid URI",
		route.V == "" || isURI(route.V), "Route service url must be a valid URI",
		route.V == "" || strings.HasPrefix(route.V, "https:"), "Route service url must be https")
}

func (c *call) createUserProvided(i *cf.ServiceInstance, req serviceRequest, audited doc) (*response, error) {
	i.Credentials = objectOf(req.Credentials)
	i.SyslogDrainURL, i.RouteServiceURL = req.DrainURL.V, req.RouteURL.V
	i.LastOperation = services.Done(c.Session, cf.OpCreate, services.OperationSucceeded)
	if err := services.RouteServiceFault(i.RouteServiceURL); err != nil {
		return nil, err
	}
	if err := services.Save(c.Session, i, store.ServiceInstances.Insert); err != nil {
		return nil, err
	}
	if err := services.Event(c.Session, audit.UserProvidedCreate, i, audited); err != nil {
		return nil, err
	}
	return created(viewServiceInstance(c, i))
}

// objectOf is a JSON object that a request gives; nil of none and null.
func objectOf(v change.Field[json.RawMessage]) json.RawMessage {
	if !v.Set || v.Null {
		return nil
	}
	return v.V
}

// userProvidedChange is a request to change a user-provided service instance.
type userProvidedChange struct {
	Name        change.Field[string]          `json:"name"`
	Tags        change.Field[tagList]         `json:"tags"`
	Credentials change.Field[json.RawMessage] `json:"credentials"`
	DrainURL    change.Field[string]          `json:"syslog_drain_url"`
	RouteURL    change.Field[string]          `json:"route_service_url"`
	Metadata    *change.Metadata              `json:"metadata"`
}

func (r userProvidedChange) Validate() []string {
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
	if err := services.RouteServiceFault(i.RouteServiceURL); err != nil {
		return err
	}
	return r.Metadata.Apply(&i.Metadata)
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
	i.LastOperation = services.Done(c.Session, cf.OpUpdate, services.OperationSucceeded)
	if err := services.Save(c.Session, i, store.ServiceInstances.Update); err != nil {
		return nil, err
	}
	if err := services.PassOn(c.Session, i); err != nil {
		return nil, err
	}
	if err := services.Event(c.Session, audit.UserProvidedUpdate, &before, audited); err != nil {
		return nil, err
	}
	return ok(viewServiceInstance(c, i))
}

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
	if err := services.Event(c.Session, audit.UserProvidedShow, i, nil); err != nil {
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
