package api

import (
	"time"

	"cupola/runtime/lrp"
	"cupola/server/control/apps"
)

// staleBindings are the details of an instance that has older bindings than its
// app, or has them in another form, until it ends.
const staleBindings = "its service bindings have changed: restart the app to apply that"

// showBindings adds to the stats of an instance that runs which bindings it has.
func showBindings(c *call, b *apps.Bound, a *lrp.Actual, s lrp.Stats, d doc) {
	has, since, fresh := b.Started, a.Since, false
	if s.FilesDigest != "" {
		has, since, fresh = s.FilesDigest, s.FilesSince, b.ByFiles
	}
	current := has == b.Now && !b.Restart
	if !current && (b.Restart || !fresh) && d["details"] == nil {
		d["details"] = staleBindings
	}
	d["bindings"] = doc{"revision": c.Tx.Fingerprint([]byte(has)), "updated_at": since.UTC().Format(time.RFC3339), "current": current}
}
