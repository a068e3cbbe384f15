package store

// thinned are the rows of an app that nothing needs while it is there, and of
// which there can be thousands: those that only tell what was.
var thinned = []struct{ table, unless string }{
	{"tasks", "state NOT IN ('SUCCEEDED', 'FAILED')"},
	{"builds", "state = 'STAGING'"},
	{"deployments", "status_value = 'ACTIVE'"},
	{"revisions", "EXISTS (SELECT 1 FROM processes p WHERE p.app_guid = revisions.app_guid AND p.revision_guid = revisions.guid)"},
	{"packages", "EXISTS (SELECT 1 FROM builds b WHERE b.package_guid = packages.guid)"},
	{"droplets", `EXISTS (SELECT 1 FROM apps a WHERE a.guid = droplets.app_guid AND a.droplet_guid = droplets.guid) OR EXISTS (SELECT 1 FROM processes p WHERE p.app_guid = droplets.app_guid AND p.droplet_guid = droplets.guid)
		OR EXISTS (SELECT 1 FROM tasks t WHERE t.app_guid = droplets.app_guid AND t.droplet_guid = droplets.guid)`},
}

// ThinApp deletes at most n rows of an app that is about to be deleted, and tells
// how many: with fewer than n the app itself has few left.
func (tx *Tx) ThinApp(app string, n int) (deleted int, err error) {
	for _, of := range thinned {
		gone, err := tx.exec("DELETE FROM "+of.table+" WHERE id IN (SELECT id FROM "+of.table+" WHERE app_guid = ? AND NOT ("+of.unless+")"+limit(n-deleted)+")", app)
		if deleted += int(gone); err != nil || deleted == n {
			return deleted, err
		}
	}
	return deleted, nil
}
