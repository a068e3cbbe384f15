package api

import (
	"encoding/json"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/change"
	"cupola/server/control/services"
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
		return c.foreseeInstances(control.GUIDs(rows, func(b *cf.RouteBinding) string { return b.InstanceGUID }))
	}, routeBindingIncludes)
})

func createRouteBinding(c *call) (*response, error) {
	var req struct {
		Parameters    change.Field[json.RawMessage] `json:"parameters"`
		Metadata      *change.Metadata              `json:"metadata"`
		Relationships struct {
			Instance *ref `json:"service_instance"`
			Route    *ref `json:"route"`
		} `json:"relationships"`
	}
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	faults := append(control.Must(isObject(req.Parameters), "Parameters must be an object"), relationFaults(req.Relationships.Instance, "service_instance")...)
	if err := control.Invalid(append(faults, relationFaults(req.Relationships.Route, "route")...)); err != nil {
		return nil, err
	}
	i, r, err := c.routeAndService(req.Relationships.Instance.guid(), req.Relationships.Route.guid())
	if err != nil {
		return nil, err
	}
	if i.Type == cf.UserProvided && req.Parameters.Set {
		return nil, cf.Unprocessable("Binding parameters are not supported for user-provided service instances")
	}
	b := &cf.RouteBinding{InstanceGUID: i.GUID, RouteGUID: r.GUID}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := services.BindRoute(c.Session, b, i, r); err != nil {
		return nil, err
	}
	if i.Type == cf.Managed {
		return c.serviceJob(cf.JobCreateRouteBinding, services.RouteBinding, b.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: audited})
	}
	return &response{status: 201, body: viewRouteBinding(c, b)}, services.RouteBindingEvent(c.Session, "create", b, i, audited)
}

// routeAndService are the service instance and the route that a request names.
func (c *call) routeAndService(instance, route string) (*cf.ServiceInstance, *cf.Route, error) {
	i, err := store.ServiceInstances.Visible(c.Tx, instance, c.Scope)
	if err == nil {
		_, err = store.Spaces.Visible(c.Tx, i.SpaceGUID, c.Scope)
	}
	if err != nil {
		c.Checked = true
		return nil, nil, control.Unprocessable(err, "The service instance could not be found: %s", instance)
	}
	if _, err := c.InSpace(i.SpaceGUID); err != nil {
		return nil, nil, err
	}
	r, err := store.Routes.Visible(c.Tx, route, c.Scope)
	if err == nil {
		_, err = store.Spaces.Visible(c.Tx, r.SpaceGUID, c.Scope)
	}
	if err != nil {
		err = control.Unprocessable(err, "The route could not be found: %s", route)
	}
	return i, r, err
}

// routeBound is the route binding of {guid} with its instance, if the actor
// sees it and satisfies the rule at the route's space.
func (c *call) routeBound() (*cf.RouteBinding, *cf.ServiceInstance, error) {
	b, err := store.RouteBindings.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, nil, err
	}
	i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
	if err != nil {
		return nil, nil, err
	}
	_, err = c.InSpace(i.SpaceGUID)
	return b, i, err
}

func updateRouteBinding(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata `json:"metadata"`
	}
	b, i, err := c.routeBound()
	if err != nil {
		return nil, err
	}
	if b.LastOperation.Is(cf.OpDelete, cf.OpInitial, cf.OpInProgress) {
		return nil, cf.Unprocessable("The service route binding is being deleted")
	}
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := store.RouteBindings.Update(c.Tx, b); err != nil {
		return nil, err
	}
	return &response{body: viewRouteBinding(c, b)}, services.RouteBindingEvent(c.Session, "update", b, i, audited)
}

func deleteRouteBinding(c *call) (*response, error) {
	b, i, err := c.routeBound()
	if err != nil {
		return nil, err
	}
	if err := services.BindingIdle(b.LastOperation, i); err != nil {
		return nil, err
	}
	if i.Type == cf.UserProvided {
		if err := services.RemoveRouteBinding(c.Session, b, i); err != nil {
			return nil, err
		}
		return noContent()
	}
	b.LastOperation = cf.Begin(cf.OpDelete, cf.OpInProgress, c.Tx.Now)
	if err := store.RouteBindings.Update(c.Tx, b); err != nil {
		return nil, err
	}
	return c.serviceJob(cf.JobDeleteRouteBinding, services.RouteBinding, b.GUID, cf.ServiceWork{})
}

// routeBindingParameters finds which binding's parameters its broker is asked
// for.
func routeBindingParameters(c *call) (ParameterQuery, error) {
	b, i, err := c.routeBound()
	if err != nil {
		return ParameterQuery{}, err
	}
	if err := services.NotMade(services.RouteKind, b.LastOperation); err != nil {
		return ParameterQuery{}, err
	}
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return ParameterQuery{}, err
	}
	if !c.MayDevelop(space) {
		return ParameterQuery{}, access.NotAuthorized()
	}
	if i.Type != cf.Managed {
		return ParameterQuery{}, cf.Errorf(cf.BadRequest, "Bad request: user provided service instances do not support fetching route bindings parameters.")
	}
	o, err := services.OfferOf(c.Session, i)
	if err == nil && !o.Offering.BindingsRetrievable {
		err = cf.Errorf(cf.BadRequest, "Bad request: this service does not support fetching route bindings parameters.")
	}
	return ParameterQuery{InstanceGUID: i.GUID, BindingGUID: b.GUID}, err
}
