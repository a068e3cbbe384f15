package api

import (
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// seedBackup makes db-1 an instance of the built-in broker's postgres, with a backup.
func seedBackup(tx *store.Tx) error {
	if err := store.DataInstances.Insert(tx, &cf.DataInstance{Resource: guid("db-1"), Service: "postgres", Plan: "small", State: cf.DataReady}); err != nil {
		return err
	}
	return store.DataBackups.Insert(tx, &cf.DataBackup{Resource: guid("backup-1"), InstanceGUID: "db-1", Service: "postgres", Version: "PostgreSQL 15", Reason: cf.BackupRequested,
		State: cf.BackupReady, Size: 3, Digest: "d"})
}

// TestServiceBackups asks for backups and restores that can be, and such that cannot.
func TestServiceBackups(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	w.write(seedBackup)
	w.write(func(tx *store.Tx) error {
		if err := store.DataInstances.Insert(tx, &cf.DataInstance{Resource: guid("db-2"), Service: "redis", Plan: "small", State: cf.DataReady}); err != nil {
			return err
		}
		return store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: guid("db-3"), Name: "db3", Type: cf.Managed, SpaceGUID: "space-3", PlanGUID: "plan-s"})
	})
	const busy = "An operation for service instance db1 is in progress."
	restore := func(of string) string { return `{"backup": {"guid": "` + of + `"}}` }
	w.run(t, []step{
		{method: "GET", path: "/v1/service_backups/backup-1", status: 200, want: `{"guid": "backup-1", "state": "READY", "reason": "requested", "service": "postgres", "version": "PostgreSQL 15", "size": 3,
			"relationships": {"service_instance": {"data": {"guid": "db-1"}}}}`},
		{method: "POST", path: "/v1/service_instances/ups-1/backups", status: 422, want: detail(10008, "Only service instances of the built-in broker can be backed up.")},
		{method: "POST", path: "/v1/service_instances/db-3/backups", status: 422, want: detail(10008, "Only service instances of the built-in broker can be backed up.")},
		{method: "POST", path: "/v1/service_instances/none/backups", status: 404, want: detail(10010, "Service instance not found")},
		{method: "POST", path: "/v1/service_instances/db-1/actions/restore", body: `{}`, status: 422, want: detail(10008, `Backup must be structured like this: "backup: {"guid": "valid-guid"}"`)},
		{method: "POST", path: "/v1/service_instances/db-1/actions/restore", body: restore("none"), status: 422, want: detail(10008, "The backup could not be found: 'none'")},
		{method: "POST", path: "/v1/service_instances/db-2/actions/restore", body: restore("backup-1"), status: 422,
			want: detail(10008, "The backup is of postgres, but the service instance db2 is of redis.")},

		{as: "space_developer", method: "POST", path: "/v1/service_instances/db-1/backups", status: 202, want: `{"state": "PROCESSING", "reason": "requested"}`, save: "made"},
		{method: "POST", path: "/v1/service_instances/db-1/backups", status: 409, want: detail(60016, busy)},
		{method: "POST", path: "/v1/service_instances/db-1/actions/restore", body: restore("backup-1"), status: 409, want: detail(60016, busy)},
		{method: "GET", path: "/v1/service_backups/{made}/download", status: 422, want: detail(10008, "The backup is not ready.")},
		{method: "DELETE", path: "/v1/service_backups/{made}", status: 409, want: detail(60016, busy)},
		{method: "GET", path: "/v1/service_instances/db-1/backups?order_by=-created_at", status: 200, want: `{"pagination": {"total_results": 2}, "resources": [{"guid": "{made}"}, {"guid": "backup-1"}]}`},
	})
	w.write(func(tx *store.Tx) error { return store.DataBackups.Delete(tx, w.saved["made"]) })
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/v1/service_instances/db-1/actions/restore", body: restore("backup-1"), status: 202, save: "job"},
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"operation": "service_instance.restore", "state": "PROCESSING"}`},
		{method: "GET", path: "/v3/service_instances/db-1", status: 200, want: `{"last_operation": {"type": "update", "state": "in progress", "description": "restore of the backup backup-1"}}`},
		{method: "DELETE", path: "/v3/service_instances/db-1", status: 422, want: detail(10008, "There is an operation in progress for the service instance.")},
		{method: "DELETE", path: "/v1/service_backups/backup-1", status: 204},
		{method: "GET", path: "/v3/audit_events?types=audit.service_instance.backup.restore", status: 200, want: `{"resources": [{"target": {"guid": "db-1", "name": "db1"}, "data": {"request": {"backup_guid": "backup-1"}}}]}`},
	})
}
