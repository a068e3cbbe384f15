package api

import (
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bindings"
	"cupola/server/control/services"
	"cupola/server/desire"
	"cupola/store/cf"
)

// boundNow is by what an app's instances are told of its bindings now, and by
// what they were when its process was started.
type boundNow struct {
	app     string // the digest of files, or VCAP_SERVICES
	process string // VCAP_SERVICES
	byFiles bool
}

// staleBindings are the details of an instance that has older bindings than its
// app, and will have until it ends.
const staleBindings = "its service bindings have changed: restart the app to apply that"

func (c *call) bindingsNow(p *cf.Process, app *cf.App) (*boundNow, error) {
	list, err := services.BoundTo(c.Session, app)
	if err != nil {
		return nil, err
	}
	b := &boundNow{}
	b.app, b.process = desire.VCAPServices(list), desire.VCAPServices(desire.StartedBindings(p, list))
	if form := bindings.Form(app.BindingForm); form != bindings.FormNone {
		files, _ := bindings.Files(form, list)
		b.app, b.byFiles = lrp.FilesDigest(append([]lrp.File{}, files...)), true
	}
	return b, nil
}

// on adds to the stats of an instance that runs which bindings it has.
func (b boundNow) on(c *call, a *lrp.Actual, s lrp.Stats, d doc) {
	has, since, fresh := b.process, a.Since, false
	if s.FilesDigest != "" {
		has, since, fresh = s.FilesDigest, s.FilesSince, b.byFiles
	}
	current := has == b.app
	if !current && !fresh && d["details"] == nil {
		d["details"] = staleBindings
	}
	d["bindings"] = doc{"revision": c.Tx.Fingerprint([]byte(has)), "updated_at": since.UTC().Format(time.RFC3339), "current": current}
}
