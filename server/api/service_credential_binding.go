package api

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

func viewServiceBinding(c *call, b *cf.ServiceBinding) doc {
	self := "/v3/service_credential_bindings/" + b.GUID
	relationships := doc{"service_instance": toOne(b.InstanceGUID)}
	links := doc{"self": c.link("%s", self), "details": c.link("%s/details", self), "service_instance": c.link("/v3/service_instances/%s", b.InstanceGUID)}
	if i, err := recall(c, store.ServiceInstances, b.InstanceGUID); err == nil && i.Type == cf.Managed {
		links["parameters"] = c.link("%s/parameters", self)
	}
	if b.AppGUID != "" {
		relationships["app"], links["app"] = toOne(b.AppGUID), c.link("/v3/apps/%s", b.AppGUID)
	}
	return with(resource(b.Resource), doc{"name": b.Name, "type": b.Type, "last_operation": viewOperation(b.LastOperation),
		"metadata": metadata(b.Metadata), "relationships": relationships, "links": links})
}

const bindingIncludes = "include=app|service_instance"

func includeOfBindings(c *call, rows []*cf.ServiceBinding, what string) (string, []doc, error) {
	if what == "app" {
		apps := control.Without(rows, func(b *cf.ServiceBinding) bool { return b.AppGUID == "" })
		docs, err := including(c, store.Apps, viewApp, control.GUIDs(apps, func(b *cf.ServiceBinding) string { return b.AppGUID }))
		return "apps", docs, err
	}
	docs, err := includingInstances(c, control.GUIDs(rows, func(b *cf.ServiceBinding) string { return b.InstanceGUID }))
	return "service_instances", docs, err
}

var listServiceBindings = inTx(func(c *call) (*response, error) {
	if kind := c.Request.URL.Query().Get("type"); kind != "" && kind != cf.BindingApp && kind != cf.BindingKey {
		return nil, badQuery("Type must be one of 'app', 'key'")
	}
	return listForeseeing(c, store.ServiceBindings, viewServiceBinding, includeOfBindings, func(rows []*cf.ServiceBinding) error {
		return c.foreseeInstances(control.GUIDs(rows, func(b *cf.ServiceBinding) string { return b.InstanceGUID }))
	}, bindingIncludes)
})

// bound is the binding of {guid} with its instance, if the actor sees it.
func (c *call) bound() (*cf.ServiceBinding, *cf.ServiceInstance, error) {
	b, err := store.ServiceBindings.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, nil, err
	}
	i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
	return b, i, err
}

// showServiceBindingDetails shows what a binding holds. Who may not see it is
// told that there is none.
func showServiceBindingDetails(c *call) (*response, error) {
	b, i, err := c.bound()
	if err != nil {
		return nil, err
	}
	space, err := services.BindingSpace(c.Session, b, i)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(c.Rule, access.At(space)) {
		return nil, cf.Errorf(cf.ResourceNotFound, "Service credential binding not found")
	}
	if err := services.NotMade(b.Type, b.LastOperation); err != nil {
		return nil, err
	}
	d := doc{}
	if len(b.Credentials) > 0 {
		d["credentials"] = b.Credentials
	}
	if b.SyslogDrainURL != "" {
		d["syslog_drain_url"] = b.SyslogDrainURL
	}
	if len(b.VolumeMounts) > 0 {
		d["volume_mounts"] = b.VolumeMounts
	}
	request := doc{"service_instance_guid": b.InstanceGUID}
	if b.AppGUID != "" {
		request["app_guid"] = b.AppGUID
	}
	return &response{body: d}, services.BindingEvent(c.Session, "show", b, i, request)
}

func updateServiceBinding(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata `json:"metadata"`
	}
	b, i, err := c.bound()
	if err != nil {
		return nil, err
	}
	space, err := services.BindingSpace(c.Session, b, i)
	if err != nil {
		return nil, err
	}
	if err := c.Permit(access.At(space)); err != nil {
		return nil, err
	}
	if b.LastOperation.Is(cf.OpDelete, cf.OpInitial, cf.OpInProgress) {
		return nil, cf.Unprocessable("The service binding is being deleted")
	}
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := store.ServiceBindings.Update(c.Tx, b); err != nil {
		return nil, err
	}
	return &response{body: viewServiceBinding(c, b)}, services.BindingEvent(c.Session, "update", b, i, audited)
}

func deleteServiceBinding(c *call) (*response, error) {
	b, i, err := c.bound()
	if err != nil {
		return nil, err
	}
	space, err := services.BindingSpace(c.Session, b, i)
	if err != nil {
		return nil, err
	}
	place := access.At(space)
	if err := c.Permit(place); err != nil {
		return nil, err
	}
	if b.Type == cf.BindingKey && !c.Actor.May(authz.SpaceDeveloper, place) {
		return nil, access.NotAuthorized()
	}
	if err := services.BindingIdle(b.LastOperation, i); err != nil {
		return nil, err
	}
	if i.Type == cf.Managed {
		j, err := services.Unbind(c.Session, b)
		if err != nil {
			return nil, err
		}
		return c.job(j)
	}
	if err := services.RemoveBinding(c.Session, b, i); err != nil {
		return nil, err
	}
	return noContent()
}

// serviceBindingParameters finds which binding's parameters its broker is asked
// for.
func serviceBindingParameters(c *call) (ParameterQuery, error) {
	b, i, err := c.bound()
	if err != nil {
		return ParameterQuery{}, err
	}
	if err := services.NotMade(b.Type, b.LastOperation); err != nil {
		return ParameterQuery{}, err
	}
	unknown := cf.Errorf(cf.BindingParametersUnknown, "This service does not support fetching service binding parameters.")
	if i.Type != cf.Managed {
		return ParameterQuery{}, unknown
	}
	o, err := services.OfferOf(c.Session, i)
	if err == nil && !o.Offering.BindingsRetrievable {
		err = unknown
	}
	return ParameterQuery{InstanceGUID: i.GUID, BindingGUID: b.GUID}, err
}
