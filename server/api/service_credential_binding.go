package api

import (
	"cupola/server/control"
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
	return listForeseeing(c, store.ServiceBindings.Table, viewServiceBinding, includeOfBindings, func(rows []*cf.ServiceBinding) error {
		return foreseeInstances(c, control.GUIDs(rows, func(b *cf.ServiceBinding) string { return b.InstanceGUID }))
	}, bindingIncludes)
})

// showServiceBindingDetails shows what a binding holds.
func showServiceBindingDetails(c *call) (*response, error) {
	b, err := services.BindingDetails(c.Session, c.guid())
	if err != nil {
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
	return ok(d)
}
