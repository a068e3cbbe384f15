package store

import "cupola/store/cf"

// ScalingPolicies are the scaling policies of apps, at most one of each. They end with their app.
var ScalingPolicies = &Table[cf.ScalingPolicy]{table{
	name: "scaling_policies", singular: "Policy",
	columns: "guid, created_at, updated_at, app_guid, policy, rests_to, schedule",
	fields: fieldsOf(func(v *cf.ScalingPolicy, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.AppGUID, &v.Policy, timeColumn{&v.RestsTo}, &v.Schedule}
	}),
	resource: resourceOf(func(v *cf.ScalingPolicy) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "app_guids": "app_guid"},
}}

// ScalingEvents are the scaling histories of apps. They end with their app.
var ScalingEvents = scalingEvents{&Table[cf.ScalingEvent]{table{
	name: "scaling_events", singular: "Event",
	columns: "guid, created_at, updated_at, app_guid, type, status, old, new, reason, message, error",
	fields: fieldsOf(func(v *cf.ScalingEvent, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.AppGUID, &v.Type, &v.Status, &v.Old, &v.New, &v.Reason, &v.Message, &v.Error}
	}),
	resource: resourceOf(func(v *cf.ScalingEvent) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "app_guids": "app_guid"},
}}}

type scalingEvents struct{ *Table[cf.ScalingEvent] }

// Forget deletes all but the newest entries of an app's history.
func (t scalingEvents) Forget(tx *Tx, appGUID string, kept int) error {
	_, err := tx.exec("DELETE FROM scaling_events WHERE app_guid = ? AND id <= (SELECT id FROM scaling_events WHERE app_guid = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
		appGUID, appGUID, kept)
	return err
}

// ScalingInstances are the service instances of the autoscaler's service.
var ScalingInstances = &Table[cf.ScalingInstance]{table{
	name: "scaling_instances", singular: "Scaling instance",
	columns: "guid, created_at, updated_at, request, default_policy",
	fields: fieldsOf(func(v *cf.ScalingInstance, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Request, &v.DefaultPolicy}
	}),
	resource: resourceOf(func(v *cf.ScalingInstance) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid"},
}}

// ScalingBindings are the apps that are bound to them, each at most once. They end with their
// instance and with their app.
var ScalingBindings = &Table[cf.ScalingBinding]{table{
	name: "scaling_bindings", singular: "Scaling binding",
	columns: "guid, created_at, updated_at, instance_guid, app_guid, request, password",
	fields: fieldsOf(func(v *cf.ScalingBinding, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.InstanceGUID, &v.AppGUID, &v.Request, sealedColumn{k, &v.Password}}
	}),
	resource: resourceOf(func(v *cf.ScalingBinding) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "instance_guids": "instance_guid", "app_guids": "app_guid"},
}}
