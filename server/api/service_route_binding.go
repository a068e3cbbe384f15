package api

import (
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

func viewRouteBinding(c *call, b *cf.RouteBinding) doc {
	self := "/v3/service_route_bindings/" + b.GUID
	links := doc{"self": c.link("%s", self), "service_instance": c.link("/v3/service_instances/%s", b.InstanceGUID), "route": c.link("/v3/routes/%s", b.RouteGUID)}
	if i, err := recall(c, store.ServiceInstances, b.InstanceGUID); err == nil && i.Type == cf.Managed {
		links["parameters"] = c.link("%s/parameters", self)
	}
	return with(resource(b.Resource), doc{"route_service_url": control.OrNil(b.RouteServiceURL), "last_operation": viewOperation(b.LastOperation),
		"metadata": metadata(b.Metadata), "relationships": doc{"service_instance": toOne(b.InstanceGUID), "route": toOne(b.RouteGUID)}, "links": links})
}

const routeBindingIncludes = "include=route|service_instance"

func includeOfRouteBindings(c *call, rows []*cf.RouteBinding, what string) (string, []doc, error) {
	if what == "route" {
		docs, err := including(c, store.Routes, viewRoute, control.GUIDs(rows, func(b *cf.RouteBinding) string { return b.RouteGUID }))
		return "routes", docs, err
	}
	docs, err := includingInstances(c, control.GUIDs(rows, func(b *cf.RouteBinding) string { return b.InstanceGUID }))
	return "service_instances", docs, err
}

var listRouteBindings = inTx(func(c *call) (*response, error) {
	return listForeseeing(c, store.RouteBindings, viewRouteBinding, includeOfRouteBindings, func(rows []*cf.RouteBinding) error {
		return foreseeInstances(c, control.GUIDs(rows, func(b *cf.RouteBinding) string { return b.InstanceGUID }))
	}, routeBindingIncludes)
})
