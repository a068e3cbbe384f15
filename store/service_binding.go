package store

import (
	"encoding/json"
	"maps"
	"slices"

	"cupola/store/cf"
)

// ServiceBindings are the service credential bindings, of apps and keys. Users who see
// the app of a binding, or the service instance of a key, see it.
var ServiceBindings = serviceBindings{&Table[cf.ServiceBinding]{table{
	name: "service_bindings", singular: "Service credential binding", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, type, name, instance_guid, app_guid, credentials, syslog_drain_url, volume_mounts, last_operation",
	fields: fieldsOf(func(v *cf.ServiceBinding, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Type, &v.Name, &v.InstanceGUID, nullColumn{&v.AppGUID},
			sealedTextColumn{k, &v.Credentials}, sealedColumn{k, &v.SyslogDrainURL}, sealedTextColumn{k, &v.VolumeMounts}, jsonColumn{&v.LastOperation}}
	}),
	resource: resourceOf(func(v *cf.ServiceBinding) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":                  "service_bindings.guid",
		"names":                  "name",
		"type":                   "type",
		"service_instance_guids": "instance_guid",
		"service_instance_names": "instance_guid IN (SELECT guid FROM service_instances WHERE name IN (SELECT value FROM json_each(?)))",
		"service_plan_guids":     "instance_guid IN (SELECT guid FROM service_instances WHERE plan_guid IN (SELECT value FROM json_each(?)))",
		"service_plan_names":     "instance_guid IN (SELECT i.guid FROM service_instances i JOIN service_plans p ON p.guid = i.plan_guid WHERE p.name IN (SELECT value FROM json_each(?)))",
		"service_offering_guids": "instance_guid IN (SELECT i.guid FROM service_instances i JOIN service_plans p ON p.guid = i.plan_guid WHERE p.offering_guid IN (SELECT value FROM json_each(?)))",
		"service_offering_names": "instance_guid IN (SELECT i.guid FROM service_instances i JOIN service_plans p ON p.guid = i.plan_guid " +
			"JOIN service_offerings o ON o.guid = p.offering_guid WHERE o.name IN (SELECT value FROM json_each(?)))",
		"app_guids":        "app_guid",
		"app_names":        "app_guid IN (SELECT guid FROM apps WHERE name IN (SELECT value FROM json_each(?)))",
		"operation_states": "last_operation ->> 'state'",

		// Not of the API.
		"instance_types":         "(SELECT i.type FROM service_instances i WHERE i.guid = instance_guid)",
		"app_space_guids":        "app_guid IN (SELECT guid FROM apps WHERE space_guid IN (SELECT value FROM json_each(?)))",
		"app_organization_guids": "app_guid IN (SELECT guid FROM apps WHERE space_guid IN (" + spacesOfOrgs + "))",
		"space_guids":            "instance_guid IN (SELECT guid FROM service_instances WHERE space_guid IN (SELECT value FROM json_each(?)))",
		"organization_guids":     "instance_guid IN (SELECT guid FROM service_instances WHERE space_guid IN (" + spacesOfOrgs + "))",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible: "CASE type WHEN 'app' THEN (SELECT space_guid FROM apps WHERE guid = app_guid) ELSE (SELECT space_guid FROM service_instances WHERE guid = instance_guid) END IN :spaces",
}}}

type serviceBindings struct{ *Table[cf.ServiceBinding] }

// RouteBindings are the service route bindings.
var RouteBindings = &Table[cf.RouteBinding]{table{
	name: "route_bindings", singular: "Service route binding", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, instance_guid, route_guid, route_service_url, last_operation",
	fields: fieldsOf(func(v *cf.RouteBinding, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.InstanceGUID, &v.RouteGUID, sealedColumn{k, &v.RouteServiceURL}, jsonColumn{&v.LastOperation}}
	}),
	resource: resourceOf(func(v *cf.RouteBinding) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":                  "route_bindings.guid",
		"service_instance_guids": "instance_guid",
		"service_instance_names": "instance_guid IN (SELECT guid FROM service_instances WHERE name IN (SELECT value FROM json_each(?)))",
		"route_guids":            "route_guid",
		"operation_states":       "last_operation ->> 'state'",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible: "(SELECT space_guid FROM service_instances WHERE guid = instance_guid) IN :spaces",
}}

// PassOn gives all bindings of a user-provided service instance what
// it says now.
func (serviceBindings) PassOn(tx *Tx, instance string, credentials json.RawMessage, drain string) error {
	_, err := tx.exec("UPDATE service_bindings SET credentials = ?, syslog_drain_url = ?, updated_at = ? WHERE instance_guid = ?",
		sealedTextColumn{tx.seal, &credentials}, sealedColumn{tx.seal, &drain}, tx.Now.UnixMicro(), instance)
	return err
}

// OfApps are the bindings of apps by the app's GUID, in the order in which they
// were made. A Reads keeps them, as KeptBy says.
func (t serviceBindings) OfApps(tx *Tx, apps ...string) (map[string][]cf.AppService, error) {
	rows, err := t.KeptBy(tx, "app_guids", apps...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	instances, err := byGUID(tx, ServiceInstances, rows, func(b *cf.ServiceBinding) string { return b.InstanceGUID })
	if err != nil {
		return nil, err
	}
	plans, err := byGUID(tx, ServicePlans.Table, values(instances), func(i *cf.ServiceInstance) string { return i.PlanGUID })
	if err != nil {
		return nil, err
	}
	offerings, err := byGUID(tx, ServiceOfferings, values(plans), func(p *cf.ServicePlan) string { return p.OfferingGUID })
	if err != nil {
		return nil, err
	}
	of := map[string][]cf.AppService{}
	for _, b := range rows {
		s := cf.AppService{Binding: b, Instance: instances[b.InstanceGUID]}
		if s.Instance == nil { // it is damaged
			continue
		}
		if s.Plan = plans[s.Instance.PlanGUID]; s.Plan != nil {
			s.Offering = offerings[s.Plan.OfferingGUID]
		}
		of[b.AppGUID] = append(of[b.AppGUID], s)
	}
	return of, nil
}

// byGUID gives what rows name of a table, by GUID.
func byGUID[R, T any](tx *Tx, t *Table[T], rows []*R, guid func(*R) string) (map[string]*T, error) {
	var guids []string
	for _, r := range rows {
		guids = append(guids, guid(r))
	}
	found, err := t.KeptBy(tx, "guids", guids...)
	m := map[string]*T{}
	for _, v := range found {
		m[t.table.resource(v).GUID] = v
	}
	return m, err
}

func values[T any](m map[string]*T) []*T { return slices.Collect(maps.Values(m)) }
