package store

import "cupola/store/cf"

// ServiceInstances are the service instances.
var ServiceInstances = &Table[cf.ServiceInstance]{table{
	name: "service_instances", singular: "Service instance", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, name, type, space_guid, shared_spaces, tags, last_operation, " +
		"credentials, syslog_drain_url, route_service_url, plan_guid, dashboard_url, maintenance_version, broker_metadata",
	fields: fieldsOf(func(v *cf.ServiceInstance, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Name, &v.Type, &v.SpaceGUID, jsonColumn{&v.SharedSpaces}, jsonColumn{&v.Tags}, jsonColumn{&v.LastOperation},
			sealedTextColumn{k, &v.Credentials}, sealedColumn{k, &v.SyslogDrainURL}, sealedColumn{k, &v.RouteServiceURL},
			nullColumn{&v.PlanGUID}, &v.DashboardURL, &v.MaintenanceVersion, textColumn{&v.BrokerMetadata}}
	}),
	resource: resourceOf(func(v *cf.ServiceInstance) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "service_instances.guid",
		"names":              "name",
		"type":               "type",
		"space_guids":        sharedOr("space_guid IN (SELECT value FROM json_each(?))", "s.value IN (SELECT value FROM json_each(?))"),
		"organization_guids": sharedOr("space_guid IN ("+spacesOfOrgs+")", "s.value IN ("+spacesOfOrgs+")"),
		"service_plan_guids": "plan_guid",
		"service_plan_names": "plan_guid IN (SELECT guid FROM service_plans WHERE name IN (SELECT value FROM json_each(?)))",
		"operation_states":   "last_operation ->> 'state'",

		// Not of the API.
		"owner_space_guids":        "space_guid",
		"owner_organization_guids": "space_guid IN (" + spacesOfOrgs + ")",
		"shared_space_guids":       "EXISTS (SELECT 1 FROM json_each(shared_spaces) s WHERE s.value IN (SELECT value FROM json_each(?)))",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible: sharedOr("space_guid IN :spaces", "s.value IN :spaces"),
}}

const spacesOfOrgs = "SELECT guid FROM spaces WHERE org_guid IN (SELECT value FROM json_each(?))"

// sharedOr is a condition on the space of a service instance, or on one that it
// is shared with, s.value.
func sharedOr(own, shared string) string {
	return own + " OR EXISTS (SELECT 1 FROM json_each(shared_spaces) s WHERE " + shared + ")"
}

// ServicesVersion differs from an earlier one if a service instance or a binding
// was made, changed or deleted since.
func (tx *Tx) ServicesVersion() (version string, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, `SELECT printf('%d %d %d %d %d %d', i.n, i.made, i.changed, b.n, b.made, b.changed) FROM
		(SELECT count(*) n, coalesce(max(created_at), 0) made, coalesce(max(updated_at), 0) changed FROM service_instances) i,
		(SELECT count(*) n, coalesce(max(created_at), 0) made, coalesce(max(updated_at), 0) changed FROM service_bindings) b`).Scan(&version)
	return version, err
}
