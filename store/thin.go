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

// Thinned are the GUIDs of the rows of an app that ThinApp deleted.
type Thinned struct {
	Packages, Droplets []string
	Rows               int // of all tables
}

// ThinApp deletes at most n rows of an app that is about to be deleted: with fewer
// than n the app itself has few left.
func (tx *Tx) ThinApp(app string, n int) (gone Thinned, err error) {
	for _, of := range thinned {
		guids, err := tx.texts("DELETE FROM "+of.table+" WHERE id IN (SELECT id FROM "+of.table+" WHERE app_guid = ? AND NOT ("+of.unless+")"+limit(n-gone.Rows)+") RETURNING guid", app)
		if err != nil {
			return gone, err
		}
		switch of.table {
		case "packages":
			gone.Packages = guids
		case "droplets":
			gone.Droplets = guids
		}
		if gone.Rows += len(guids); gone.Rows >= n {
			break
		}
	}
	return gone, nil
}
