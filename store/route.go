package store

import "cupola/store/cf"

// Routes are the routes.
var Routes = &Table[cf.Route]{table{
	name: "routes", singular: "Route", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, space_guid, domain_guid, host, path, port, destinations, options, shared_spaces",
	fields: fieldsOf(func(v *cf.Route, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.SpaceGUID, &v.DomainGUID, &v.Host, &v.Path, &v.Port, jsonColumn{&v.Destinations}, jsonColumn{&v.Options}, jsonColumn{&v.SharedSpaces}}
	}),
	resource: resourceOf(func(v *cf.Route) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "routes.guid",
		"hosts":              "host",
		"paths":              "path",
		"ports":              "port IN (SELECT CAST(value AS INTEGER) FROM json_each(?))", // of '' and 0: those that have none
		"domain_guids":       "domain_guid",
		"space_guids":        "space_guid IN (SELECT value FROM json_each(?)) OR " + routeShared + "(SELECT value FROM json_each(?)))",
		"organization_guids": "space_guid IN (SELECT guid FROM spaces WHERE org_guid IN (SELECT value FROM json_each(?)))",
		"app_guids":          "routes.guid IN (SELECT route_guid FROM route_apps WHERE app_guid IN (SELECT value FROM json_each(?)))",

		"service_instance_guids": "EXISTS (SELECT 1 FROM route_bindings b WHERE b.route_guid = routes.guid AND b.instance_guid IN (SELECT value FROM json_each(?)))",

		// Not of the API.
		"shared_space_guids": routeShared + "(SELECT value FROM json_each(?)))",
		"owner_space_guids":  "space_guid",
		"unmapped":           "(json_array_length(destinations) = 0 AND NOT EXISTS (SELECT 1 FROM route_bindings b WHERE b.route_guid = routes.guid)) IN (SELECT CAST(value AS INTEGER) FROM json_each(?))",
		"with_port":          "(port > 0) IN (SELECT CAST(value AS INTEGER) FROM json_each(?))",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "space_guid IN :route_spaces OR " + routeShared + ":route_spaces)",
}}

const routeShared = "EXISTS (SELECT 1 FROM json_each(shared_spaces) s WHERE s.value IN "
