package store

import "cupola/store/cf"

// RoutePolicies say who may call routes.
var RoutePolicies = &Table[cf.RoutePolicy]{table{
	name: "route_policies", singular: "Route policy", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, route_guid, source",
	fields: fieldsOf(func(v *cf.RoutePolicy, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, jsonColumn{&v.Labels}, jsonColumn{&v.Annotations}, &v.RouteGUID, &v.Source}
	}),
	resource: resourceOf(func(v *cf.RoutePolicy) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":        "route_policies.guid",
		"route_guids":  "route_guid",
		"space_guids":  "route_guid IN (SELECT guid FROM routes WHERE space_guid IN (SELECT value FROM json_each(?)))",
		"sources":      "source",
		"source_guids": "substr(source, instr(substr(source, 4), ':') + 4) IN (SELECT value FROM json_each(?)) AND source <> 'cf:any'",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "route_guid IN (SELECT guid FROM routes WHERE space_guid IN :route_spaces)",
}}
