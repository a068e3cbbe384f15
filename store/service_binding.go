package store

import "cupola/store/cf"

// ServiceBindings are the service credential bindings, of apps and keys. One is
// seen by whoever sees its app, or the instance that it is a key of.
var ServiceBindings = &Table[cf.ServiceBinding]{
	name: "service_bindings", singular: "Service credential binding", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, type, name, instance_guid, app_guid, credentials, syslog_drain_url, volume_mounts, last_operation",
	fields: func(v *cf.ServiceBinding, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Type, &v.Name, &v.InstanceGUID, nullColumn{&v.AppGUID},
			sealedTextColumn{k, &v.Credentials}, sealedColumn{k, &v.SyslogDrainURL}, sealedTextColumn{k, &v.VolumeMounts}, jsonColumn{&v.LastOperation}}
	},
	resource: func(v *cf.ServiceBinding) *cf.Resource { return &v.Resource },
	filters: map[string]string{
		"guids":                  "service_bindings.guid",
		"names":                  "name",
		"type":                   "type",
		"service_instance_guids": "instance_guid",
		"service_instance_names": "instance_guid IN (SELECT guid FROM service_instances WHERE name IN (SELECT value FROM json_each(?)))",
		"service_plan_guids":     "instance_guid IN (SELECT guid FROM service_instances WHERE plan_guid IN (SELECT value FROM json_each(?)))",
		"app_guids":              "app_guid",
		"app_names":              "app_guid IN (SELECT guid FROM apps WHERE name IN (SELECT value FROM json_each(?)))",
		"operation_states":       "last_operation ->> 'state'",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible: "CASE type WHEN 'app' THEN (SELECT space_guid FROM apps WHERE guid = app_guid) ELSE (SELECT space_guid FROM service_instances WHERE guid = instance_guid) END IN :spaces",
}

// RouteBindings are the service route bindings.
var RouteBindings = &Table[cf.RouteBinding]{
	name: "route_bindings", singular: "Service route binding", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, instance_guid, route_guid, route_service_url, last_operation",
	fields: func(v *cf.RouteBinding, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.InstanceGUID, &v.RouteGUID, sealedColumn{k, &v.RouteServiceURL}, jsonColumn{&v.LastOperation}}
	},
	resource: func(v *cf.RouteBinding) *cf.Resource { return &v.Resource },
	filters: map[string]string{
		"guids":                  "route_bindings.guid",
		"service_instance_guids": "instance_guid",
		"service_instance_names": "instance_guid IN (SELECT guid FROM service_instances WHERE name IN (SELECT value FROM json_each(?)))",
		"route_guids":            "route_guid",
		"operation_states":       "last_operation ->> 'state'",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "(SELECT space_guid FROM service_instances WHERE guid = instance_guid) IN :spaces",
}
