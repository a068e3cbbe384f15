package store

import (
	"context"
	"time"
)

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

// oldRows is how many rows one transaction of DropOld writes: about 10 ms.
const oldRows = 500

// DropOld deletes audit events, usage events but for the last, jobs, ended tasks, alerts that are over and known files that are old,
// and revisions and deployments of which an app has too many. It lets older bits
// of apps EXPIRE: the rows stay, what they named is no longer kept. What is in
// use stays, however old. It writes in short transactions.
func (s *Store) DropOld(ctx context.Context) error {
	for _, old := range oldOnes {
		for n := int64(oldRows); n == oldRows; {
			err := s.Write(ctx, func(tx *Tx) (err error) {
				n, err = tx.exec(old.change+" WHERE "+old.key+" IN (SELECT "+old.key+" FROM "+old.table+" WHERE "+old.where+limit(oldRows)+")", old.args(tx.Now)...)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// oldOnes are the rows that are old, and what becomes of them.
var oldOnes = []struct {
	table, key, change, where string
	args                      func(now time.Time) []any // of change and where
}{
	{"events", "id", "DELETE FROM events", "created_at < ?", before(keptHistory)},
	{"app_usage_events", "id", "DELETE FROM app_usage_events", "created_at < ? AND id < (SELECT max(id) FROM app_usage_events)", before(keptHistory)},
	{"service_usage_events", "id", "DELETE FROM service_usage_events", "created_at < ? AND id < (SELECT max(id) FROM service_usage_events)", before(keptHistory)},
	{"jobs", "id", "DELETE FROM jobs", "created_at < ?", before(keptJobs)},
	{"tasks", "id", "DELETE FROM tasks", "state IN ('SUCCEEDED', 'FAILED') AND max(created_at, updated_at) < ?", before(keptHistory)},
	{"alerts", "id", "DELETE FROM alerts", "state = 'RESOLVED' AND resolved_at < ?", before(keptHistory)},
	{"alert_silences", "id", "DELETE FROM alert_silences", "ends_at < ?", before(keptHistory)},
	{"resources", "sha1", "DELETE FROM resources", "used_at < ?", before(keptHistory)},
	{"droplets", "id", "UPDATE droplets SET state = 'EXPIRED', digest = '', updated_at = ?", `guid IN (
		SELECT guid FROM (SELECT guid, row_number() OVER (PARTITION BY app_guid ORDER BY id DESC) n FROM droplets WHERE state = 'STAGED') WHERE n > ?)
		AND NOT EXISTS (SELECT 1 FROM apps WHERE guid = droplets.app_guid AND droplet_guid = droplets.guid)
		AND NOT EXISTS (SELECT 1 FROM processes WHERE app_guid = droplets.app_guid AND droplet_guid = droplets.guid)
		AND NOT EXISTS (SELECT 1 FROM deployments WHERE app_guid = droplets.app_guid AND previous_droplet = droplets.guid AND status_value = 'ACTIVE')
		AND NOT EXISTS (SELECT 1 FROM tasks WHERE app_guid = droplets.app_guid AND droplet_guid = droplets.guid AND state NOT IN ('SUCCEEDED', 'FAILED'))`, expires},
	{"packages", "id", "UPDATE packages SET state = 'EXPIRED', digest = '', updated_at = ?", `guid IN (
		SELECT guid FROM (SELECT guid, row_number() OVER (PARTITION BY app_guid ORDER BY id DESC) n FROM packages WHERE state = 'READY' AND type = 'bits') WHERE n > ?)
		AND NOT EXISTS (SELECT 1 FROM builds WHERE package_guid = packages.guid AND state = 'STAGING')
		AND NOT EXISTS (SELECT 1 FROM droplets d JOIN apps a ON a.droplet_guid = d.guid WHERE d.package_guid = packages.guid)`, expires},
	{"revisions", "id", "DELETE FROM revisions", `guid IN (
		SELECT guid FROM (SELECT guid, row_number() OVER (PARTITION BY app_guid ORDER BY id DESC) n FROM revisions) WHERE n > ?)
		AND NOT EXISTS (SELECT 1 FROM processes WHERE app_guid = revisions.app_guid AND revision_guid = revisions.guid)`, tooMany},
	{"deployments", "id", "DELETE FROM deployments", `status_value = 'FINALIZED' AND guid IN (
		SELECT guid FROM (SELECT guid, row_number() OVER (PARTITION BY app_guid ORDER BY id DESC) n FROM deployments) WHERE n > ?)`, tooMany},
}

func before(age time.Duration) func(time.Time) []any {
	return func(now time.Time) []any { return []any{now.Add(-age).UnixMicro()} }
}

func expires(now time.Time) []any { return []any{now.UnixMicro(), keptBits} }

func tooMany(time.Time) []any { return []any{keptPast} }
