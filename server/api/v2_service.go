package api

import (
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

var v2ServiceFilters = map[string]string{"name": "names", "space_guid": "space_guids", "organization_guid": "organization_guids", "service_plan_guid": "service_plan_guids"}

// As in Cloud Controller, /v2/service_instances lists the managed ones alone, and
// shows one of either type.
var (
	v2AnyService   = v2Kind[cf.ServiceInstance]{table: store.ServiceInstances, views: viewV2Services, filters: v2ServiceFilters}
	v2Managed      = v2Kind[cf.ServiceInstance]{table: store.ServiceInstances, views: viewV2Services, filters: v2ServiceFilters, pick: func(i *cf.ServiceInstance) bool { return i.Type == cf.Managed }}
	v2UserProvided = v2Kind[cf.ServiceInstance]{table: store.ServiceInstances, views: viewV2Services, filters: v2ServiceFilters, pick: isUserProvided}
)

func isUserProvided(i *cf.ServiceInstance) bool { return i.Type == cf.UserProvided }

// v2SpaceServices lists a space's service instances: the managed ones, and all where
// the client asks for those that are user-provided, too.
func v2SpaceServices(c *call) (*response, error) {
	kind := v2Managed
	if c.Request.URL.Query().Get("return_user_provided_service_instances") == "true" {
		kind = v2AnyService
	}
	return kind.list(ofParent(store.Spaces, "space_guids"))(c)
}

func v2TypeOf(i *cf.ServiceInstance) string {
	if isUserProvided(i) {
		return "user_provided_service_instance"
	}
	return "managed_service_instance"
}

func viewV2Services(c *call, rows []*cf.ServiceInstance) ([]doc, error) {
	if err := foreseePlans(c, rows); err != nil {
		return nil, err
	}
	if err := foresee(c, store.Spaces, func(s *cf.Space) string { return s.GUID }, control.GUIDs(rows, func(i *cf.ServiceInstance) string { return i.SpaceGUID })); err != nil {
		return nil, err
	}
	return v2Each(viewV2Service)(c, rows)
}

func viewV2Service(c *call, i *cf.ServiceInstance) (doc, error) {
	s, err := recall(c, store.Spaces, i.SpaceGUID)
	if err != nil {
		return nil, err
	}
	path := "/v2/service_instances"
	if isUserProvided(i) {
		path = "/v2/user_provided_service_instances"
	}
	self := path + "/" + i.GUID
	entity := doc{"name": i.Name, "credentials": doc{}, "space_guid": i.SpaceGUID, "type": v2TypeOf(i), "tags": append([]string{}, i.Tags...),
		"space_url": "/v2/spaces/" + i.SpaceGUID, "service_bindings_url": self + "/service_bindings", "routes_url": self + "/routes"}
	if isUserProvided(i) {
		entity["credentials"] = doc{"redacted_message": concealed}
		if c.MaySeeSecrets(s) {
			entity["credentials"] = orObject(i.Credentials)
		}
		return v2Resource(i.Resource, path, with(entity, doc{"syslog_drain_url": i.SyslogDrainURL, "route_service_url": i.RouteServiceURL})), nil
	}
	plan, err := recall(c, store.ServicePlans.Table, i.PlanGUID)
	if err != nil {
		return nil, err
	}
	maintenance := doc{}
	if i.MaintenanceVersion != "" {
		maintenance["version"] = i.MaintenanceVersion
	}
	return v2Resource(i.Resource, path, with(entity, doc{
		"service_plan_guid": i.PlanGUID, "gateway_data": nil, "dashboard_url": control.OrNil(i.DashboardURL), "last_operation": viewOperation(i.LastOperation), "maintenance_info": maintenance,
		"service_guid": plan.OfferingGUID, "service_plan_url": "/v2/service_plans/" + i.PlanGUID, "service_url": "/v2/services/" + plan.OfferingGUID, "service_keys_url": self + "/service_keys",
		"shared_from_url": self + "/shared_from", "shared_to_url": self + "/shared_to", "service_instance_parameters_url": self + "/parameters",
	})), nil
}
