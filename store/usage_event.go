package store

import "cupola/store/cf"

// after takes the rows of a table that are younger than the one with a GUID.
func after(table string) string {
	return "id > (SELECT id FROM " + table + " WHERE guid IN (SELECT value FROM json_each(?)))"
}

// AppUsageEvents are what apps, tasks and builds used and when. The database
// writes them itself. Only who sees everything sees them.
var AppUsageEvents = appUsageEvents{&Table[cf.AppUsageEvent]{table{
	name: "app_usage_events", singular: "App usage event",
	columns: "guid, created_at, updated_at, state, previous_state, app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid, " +
		"buildpack_guid, buildpack_name, task_guid, task_name, memory_mb, previous_memory_mb, instances, previous_instances",
	fields: fieldsOf(func(v *cf.AppUsageEvent, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.State, &v.PreviousState,
			&v.AppGUID, &v.AppName, &v.ProcessGUID, &v.ProcessType, &v.SpaceGUID, &v.SpaceName, &v.OrgGUID,
			&v.BuildpackGUID, &v.BuildpackName, &v.TaskGUID, &v.TaskName, &v.MemoryMB, &v.PreviousMemoryMB, &v.Instances, &v.PreviousInstances}
	}),
	resource: resourceOf(func(v *cf.AppUsageEvent) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "app_usage_events.guid", "after_guid": after("app_usage_events")},
	orders:   map[string]string{"created_at": "created_at"},
	visible:  "0",
}}}

type appUsageEvents struct{ *Table[cf.AppUsageEvent] }

// Reseed forgets all usage of apps, and tells of each process that is started as
// if it were now. Its event has the GUID of the process.
func (t appUsageEvents) Reseed(tx *Tx) error {
	return t.table.reseed(tx, `INSERT INTO app_usage_events (guid, created_at, state, previous_state, app_guid, app_name, process_guid, process_type,
			space_guid, space_name, org_guid, buildpack_guid, buildpack_name, memory_mb, previous_memory_mb, instances, previous_instances)
		SELECT process_guid, ?, state, state, app_guid, app_name, process_guid, process_type,
			space_guid, space_name, org_guid, buildpack_guid, buildpack_name, memory_mb, memory_mb, instances, instances
			FROM process_usage WHERE state = 'STARTED' ORDER BY id`)
}

// ServiceUsageEvents are which service instances there were and when. The
// database writes them itself. Only who sees everything sees them.
var ServiceUsageEvents = serviceUsageEvents{&Table[cf.ServiceUsageEvent]{table{
	name: "service_usage_events", singular: "Service usage event",
	columns: "guid, created_at, updated_at, state, space_guid, space_name, org_guid, instance_guid, instance_name, instance_type, " +
		"plan_guid, plan_name, offering_guid, offering_name, broker_guid, broker_name",
	fields: fieldsOf(func(v *cf.ServiceUsageEvent, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.State, &v.SpaceGUID, &v.SpaceName, &v.OrgGUID,
			&v.InstanceGUID, &v.InstanceName, &v.InstanceType, &v.PlanGUID, &v.PlanName, &v.OfferingGUID, &v.OfferingName, &v.BrokerGUID, &v.BrokerName}
	}),
	resource: resourceOf(func(v *cf.ServiceUsageEvent) *cf.Resource { return &v.Resource }),
	filters: map[string]string{"guids": "service_usage_events.guid", "after_guid": after("service_usage_events"),
		"service_instance_types": "instance_type", "service_offering_guids": "offering_guid"},
	orders:  map[string]string{"created_at": "created_at"},
	visible: "0",
}}}

type serviceUsageEvents struct{ *Table[cf.ServiceUsageEvent] }

// Reseed forgets all usage of services, and tells of each service instance as if
// it were made now. Its event has the GUID of the instance.
func (t serviceUsageEvents) Reseed(tx *Tx) error {
	return t.table.reseed(tx, `INSERT INTO service_usage_events (guid, created_at, state, space_guid, space_name, org_guid, instance_guid, instance_name, instance_type,
			plan_guid, plan_name, offering_guid, offering_name, broker_guid, broker_name)
		SELECT instance_guid, ?, 'CREATED', space_guid, space_name, org_guid, instance_guid, instance_name, instance_type,
			plan_guid, plan_name, offering_guid, offering_name, broker_guid, broker_name FROM service_usage ORDER BY id`)
}

// reseed replaces all rows by those that a statement inserts.
func (t *table) reseed(tx *Tx, insert string) error {
	if _, err := tx.exec("DELETE FROM " + t.name); err != nil {
		return err
	}
	_, err := tx.exec(insert, tx.Now.UnixMicro())
	return err
}
