package store

import "cupola/store/cf"

// DataInstances are the service instances that the built-in broker has.
var DataInstances = &Table[cf.DataInstance]{table{
	name: "data_instances", singular: "Data instance",
	columns: "guid, created_at, updated_at, service, plan, request, secret, state, fault, definition, next, upgrade, tls_required",
	fields: fieldsOf(func(v *cf.DataInstance, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.Service, &v.Plan, &v.Request, sealedColumn{k, &v.Secret}, &v.State, &v.Fault,
			sealedColumn{k, &v.Definition}, sealedColumn{k, &v.Next}, &v.Upgrade, &v.TLSRequired}
	}),
	resource: resourceOf(func(v *cf.DataInstance) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "data_instances.guid", "states": "state"},
}}

// DataBindings are who may use them. They go with their instance.
var DataBindings = &Table[cf.DataBinding]{table{
	name: "data_bindings", singular: "Data binding",
	columns: "guid, created_at, updated_at, instance_guid, app_guid, request, password, state, tls",
	fields: fieldsOf(func(v *cf.DataBinding, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.InstanceGUID, &v.AppGUID, &v.Request, sealedColumn{k, &v.Password}, &v.State, &v.TLS}
	}),
	resource: resourceOf(func(v *cf.DataBinding) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "data_bindings.guid", "instance_guids": "instance_guid"},
}}

// DataBackups are the backups of the instances. They end with their instance.
var DataBackups = &Table[cf.DataBackup]{table{
	name: "data_backups", singular: "Backup",
	columns: "guid, created_at, updated_at, instance_guid, service, version, reason, state, size, digest, key",
	fields: fieldsOf(func(v *cf.DataBackup, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.InstanceGUID, &v.Service, &v.Version, &v.Reason, &v.State, &v.Size, &v.Digest, sealedColumn{k, &v.Key}}
	}),
	resource: resourceOf(func(v *cf.DataBackup) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "data_backups.guid", "service_instance_guids": "instance_guid", "states": "state"},
	orders:   map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible:  "instance_guid IN (SELECT guid FROM service_instances WHERE space_guid IN :spaces)",
}}
