package store

import "time"

// How long rows are kept that only tell what was, and how many packages and
// droplets an app keeps the bits of: Cloud Controller's cutoff_age_in_days, and
// max_valid_packages_stored and max_staged_droplets_stored of cf-deployment.
const (
	keptHistory = 31 * 24 * time.Hour
	keptJobs    = 90 * 24 * time.Hour
	keptBits    = 5
)

// How many revisions and ended deployments an app keeps: Cloud Controller's
// max_retained_revisions_per_app and max_retained_deployments_per_app.
const keptPast = 100

// DropOld deletes audit events, usage events but for the last, jobs, ended tasks and known files that are old,
// and revisions and deployments of which an app has too many. It lets older bits
// of apps EXPIRE: the rows stay, what they named is no longer kept. What is in
// use stays, however old.
func (tx *Tx) DropOld() error {
	before := func(age time.Duration) int64 { return tx.Now.Add(-age).UnixMicro() }
	for _, step := range []struct {
		table, sql string
		args       []any
	}{
		{"events", "DELETE FROM events WHERE created_at < ?", []any{before(keptHistory)}},
		{"app_usage_events", "DELETE FROM app_usage_events WHERE created_at < ? AND id < (SELECT max(id) FROM app_usage_events)", []any{before(keptHistory)}},
		{"service_usage_events", "DELETE FROM service_usage_events WHERE created_at < ? AND id < (SELECT max(id) FROM service_usage_events)", []any{before(keptHistory)}},
		{"jobs", "DELETE FROM jobs WHERE created_at < ?", []any{before(keptJobs)}},
		{"tasks", "DELETE FROM tasks WHERE state IN ('SUCCEEDED', 'FAILED') AND max(created_at, updated_at) < ?", []any{before(keptHistory)}},
		{"resources", "DELETE FROM resources WHERE used_at < ?", []any{before(keptHistory)}},
		{"droplets", `UPDATE droplets SET state = 'EXPIRED', digest = '', updated_at = ? WHERE guid IN (
			SELECT guid FROM (SELECT guid, row_number() OVER (PARTITION BY app_guid ORDER BY id DESC) n FROM droplets WHERE state = 'STAGED') WHERE n > ?)
			AND NOT EXISTS (SELECT 1 FROM apps WHERE droplet_guid = droplets.guid)
			AND NOT EXISTS (SELECT 1 FROM processes WHERE droplet_guid = droplets.guid)
			AND NOT EXISTS (SELECT 1 FROM deployments WHERE previous_droplet = droplets.guid AND status_value = 'ACTIVE')
			AND NOT EXISTS (SELECT 1 FROM tasks WHERE droplet_guid = droplets.guid AND state NOT IN ('SUCCEEDED', 'FAILED'))`, []any{tx.Now.UnixMicro(), keptBits}},
		{"packages", `UPDATE packages SET state = 'EXPIRED', digest = '', updated_at = ? WHERE guid IN (
			SELECT guid FROM (SELECT guid, row_number() OVER (PARTITION BY app_guid ORDER BY id DESC) n FROM packages WHERE state = 'READY' AND type = 'bits') WHERE n > ?)
			AND NOT EXISTS (SELECT 1 FROM builds WHERE package_guid = packages.guid AND state = 'STAGING')
			AND NOT EXISTS (SELECT 1 FROM droplets d JOIN apps a ON a.droplet_guid = d.guid WHERE d.package_guid = packages.guid)`, []any{tx.Now.UnixMicro(), keptBits}},
		{"revisions", `DELETE FROM revisions WHERE guid IN (
			SELECT guid FROM (SELECT guid, row_number() OVER (PARTITION BY app_guid ORDER BY id DESC) n FROM revisions) WHERE n > ?)
			AND NOT EXISTS (SELECT 1 FROM processes WHERE revision_guid = revisions.guid)`, []any{keptPast}},
		{"deployments", `DELETE FROM deployments WHERE status_value = 'FINALIZED' AND guid IN (
			SELECT guid FROM (SELECT guid, row_number() OVER (PARTITION BY app_guid ORDER BY id DESC) n FROM deployments) WHERE n > ?)`, []any{keptPast}},
	} {
		if _, err := tx.exec(step.table, step.sql, step.args...); err != nil {
			return err
		}
	}
	return nil
}
