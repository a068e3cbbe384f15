package store

import "cupola/store/cf"

// BOSHDeployments are BOSH's deployments.
var BOSHDeployments = &Table[cf.BOSHDeployment]{table{
	name: "bosh_deployments", singular: "Deployment",
	columns: "guid, created_at, updated_at, name, version, manifest, provides, consumes, aliases, configs",
	fields: fieldsOf(func(v *cf.BOSHDeployment, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Name, &v.Version, sealedBytes{k, &v.Manifest}, sealedBytes{k, &v.Provides}, jsonColumn{&v.Consumes}, sealedBytes{k, &v.Aliases}, jsonColumn{&v.Configs}}
	}),
	resource: resourceOf(func(v *cf.BOSHDeployment) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "names": "name"},
	orders:   map[string]string{"name": "name"},
}}

// BOSHVariables are the values that deployments' manifests name.
var BOSHVariables = &Table[cf.BOSHVariable]{table{
	name: "bosh_variables", singular: "Variable",
	columns: "guid, created_at, updated_at, deployment_guid, name, type, value",
	fields: fieldsOf(func(v *cf.BOSHVariable, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.DeploymentGUID, &v.Name, &v.Type, sealedBytes{k, &v.Value}}
	}),
	resource: resourceOf(func(v *cf.BOSHVariable) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "deployment_guids": "deployment_guid", "names": "name"},
	orders:   map[string]string{"name": "name"},
}}

// BOSHDisks are the persistent disks.
var BOSHDisks = &Table[cf.BOSHDisk]{table{
	name: "bosh_disks", singular: "Disk",
	columns: "guid, created_at, updated_at, deployment_name, group_name, idx, az, size_mb, orphaned_at",
	fields: fieldsOf(func(v *cf.BOSHDisk, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.DeploymentName, &v.Group, &v.Index, &v.AZ, &v.SizeMB, timeColumn{&v.OrphanedAt}}
	}),
	resource: resourceOf(func(v *cf.BOSHDisk) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "deployment_names": "deployment_name"},
}}

// BOSHInstances are the instances of deployments.
var BOSHInstances = &Table[cf.BOSHInstance]{table{
	name: "bosh_instances", singular: "Instance",
	columns: "guid, created_at, updated_at, deployment_guid, group_name, idx, az, lifecycle, disk_guid, goal, phase, since, digest, next, renew, renewed, task_guid, chosen, canary, failure",
	fields: fieldsOf(func(v *cf.BOSHInstance, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.DeploymentGUID, &v.Group, &v.Index, &v.AZ, &v.Lifecycle,
			nullColumn{&v.DiskGUID}, &v.Goal, &v.Phase, timeColumn{&v.Since}, &v.Digest, &v.Next, &v.Renew, &v.Renewed,
			&v.TaskGUID, &v.Chosen, &v.Canary, &v.Failure}
	}),
	resource: resourceOf(func(v *cf.BOSHInstance) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "deployment_guids": "deployment_guid"},
}}

// BOSHSpecs are what instances are made of, by digest.
var BOSHSpecs = boshSpecs{&Table[cf.BOSHSpec]{table{
	name: "bosh_specs", singular: "Spec",
	columns: "guid, created_at, updated_at, instance_guid, text, blobs, releases",
	fields: fieldsOf(func(v *cf.BOSHSpec, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.InstanceGUID, sealedBytes{k, &v.Text}, jsonColumn{&v.Blobs}, jsonColumn{&v.Releases}}
	}),
	resource: resourceOf(func(v *cf.BOSHSpec) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "instance_guids": "instance_guid"},
}}}

type boshSpecs struct{ *Table[cf.BOSHSpec] }

// DropUnused removes the specs that no instance has or will have.
func (boshSpecs) DropUnused(tx *Tx) error {
	_, err := tx.exec("DELETE FROM bosh_specs WHERE guid NOT IN (SELECT digest FROM bosh_instances UNION SELECT next FROM bosh_instances)" +
		" AND guid NOT IN (SELECT digest FROM bosh_calls WHERE state = 'running')")
	return err
}

// ReleasesOf returns, sorted, the releases that instances of a deployment run, or are to,
// as name/version.
func (boshSpecs) ReleasesOf(tx *Tx, deploymentGUID string) ([]string, error) {
	return tx.texts(`
		SELECT DISTINCT r.value FROM bosh_instances i JOIN bosh_specs s ON s.guid IN (i.digest, i.next), json_each(s.releases) r
		WHERE i.deployment_guid = ? AND r.value IS NOT NULL ORDER BY r.value`, deploymentGUID)
}

// UsersOf names, sorted, the deployments whose instances run a release's version, or
// are to.
func (boshSpecs) UsersOf(tx *Tx, release, version string) ([]string, error) {
	return tx.texts(`
		SELECT DISTINCT d.name FROM bosh_specs s, json_each(s.releases) r
		JOIN bosh_instances i ON s.guid IN (i.digest, i.next) JOIN bosh_deployments d ON d.guid = i.deployment_guid
		WHERE r.value = ? ORDER BY d.name`, release+"/"+version)
}

// BOSHCalls are the runs of instances' scripts and errands.
var BOSHCalls = boshCalls{&Table[cf.BOSHCall]{table{
	name: "bosh_calls", singular: "Call",
	columns: "guid, created_at, updated_at, instance_guid, phase, digest, job, process, script, args, state, result, reason, ended_at",
	fields: fieldsOf(func(v *cf.BOSHCall, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.InstanceGUID, &v.Phase, &v.Digest,
			&v.Job, &v.Process, &v.Script, jsonColumn{&v.Args}, &v.State, sealedBytes{k, &v.Result}, &v.Reason, timeColumn{&v.EndedAt}}
	}),
	resource: resourceOf(func(v *cf.BOSHCall) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "instance_guids": "instance_guid", "states": "state"},
}}}

type boshCalls struct{ *Table[cf.BOSHCall] }

// Running are the calls that have not ended.
func (t boshCalls) Running(tx *Tx) ([]*cf.BOSHCall, error) {
	return query(tx, t.Table, "SELECT "+t.table.columns+" FROM bosh_calls WHERE state = 'running' ORDER BY id")
}

// BOSHTasks are the tasks of deployments.
var BOSHTasks = boshTasks{&Table[cf.BOSHTask]{table{
	name: "bosh_tasks", singular: "Task",
	columns: "guid, created_at, updated_at, number, deployment_name, kind, user, state, ordered, plan, result, started_at, ended_at",
	fields: fieldsOf(func(v *cf.BOSHTask, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Number, &v.DeploymentName, &v.Kind, &v.User, &v.State,
			sealedBytes{k, &v.Order}, sealedBytes{k, &v.Plan}, &v.Result, timeColumn{&v.StartedAt}, timeColumn{&v.EndedAt}}
	}),
	resource: resourceOf(func(v *cf.BOSHTask) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "numbers": "number", "deployment_names": "deployment_name", "states": "state", "kinds": "kind"},
	orders:   map[string]string{"number": "number"},
}}}

type boshTasks struct{ *Table[cf.BOSHTask] }

// BOSHTaskEvents are the events of tasks.
var BOSHTaskEvents = &Table[cf.BOSHTaskEvent]{table{
	name: "bosh_task_events", singular: "Event",
	columns: "guid, created_at, updated_at, task_guid, stage, subject, state, detail",
	fields: fieldsOf(func(v *cf.BOSHTaskEvent, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.TaskGUID, &v.Stage, &v.Subject, &v.State, &v.Detail}
	}),
	resource: resourceOf(func(v *cf.BOSHTaskEvent) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "task_guids": "task_guid"},
}}

// Insert adds a task with the next number.
func (t boshTasks) Insert(tx *Tx, task *cf.BOSHTask) error {
	if err := tx.sql.QueryRowContext(tx.ctx, "SELECT coalesce(max(number), 0) + 1 FROM bosh_tasks").Scan(&task.Number); err != nil {
		return err
	}
	return t.Table.Insert(tx, task)
}

// DropEnded removes the tasks of a kind that have ended, but for the newest.
func (boshTasks) DropEnded(tx *Tx, kind string, keep int) error {
	_, err := tx.exec("DELETE FROM bosh_tasks WHERE kind = ? AND state NOT IN ('queued','processing') AND number <="+
		" (SELECT number FROM bosh_tasks WHERE kind = ? ORDER BY number DESC LIMIT 1 OFFSET ?)", kind, kind, keep)
	return err
}

// Open are the tasks that have not ended, in the order they were asked for.
func (t boshTasks) Open(tx *Tx) ([]*cf.BOSHTask, error) {
	return query(tx, t.Table, "SELECT "+t.table.columns+" FROM bosh_tasks WHERE state IN ('queued','processing') ORDER BY number")
}
