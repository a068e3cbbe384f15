package apps

import (
	"cupola/runtime/lrp"
	"cupola/server/bindings"
	"cupola/server/control"
	"cupola/server/control/services"
	"cupola/server/desire"
	"cupola/store/cf"
)

// Bound distinguishes an app's bindings from older ones: it is the digest of
// files, or VCAP_SERVICES.
type Bound struct {
	Now     string // of the app, in the form that the process was started with
	Started string // VCAP_SERVICES as the process was started with it
	ByFiles bool   // Now is of files, which change while an instance runs
	Restart bool   // the form changes with the app's next start
}

// BoundNow returns the current bindings of an app and its process.
func BoundNow(c *control.Session, app *cf.App, p *cf.Process) (b Bound, err error) {
	list, err := services.BoundTo(c, app)
	if err != nil {
		return b, err
	}
	b.Now, b.Started = desire.VCAPServices(list), desire.VCAPServices(desire.StartedBindings(p, list))
	form := desire.StartedForm(p, app)
	b.Restart = string(form) != app.BindingForm
	if form != bindings.FormNone {
		files, _ := bindings.Files(form, list)
		b.Now, b.ByFiles = lrp.FilesDigest(append([]lrp.File{}, files...)), true
	}
	return b, nil
}
