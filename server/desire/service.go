package desire

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/bindings"
	"cupola/store/cf"
)

func shown(b cf.AppService) bindings.Binding {
	s := bindings.Binding{Name: b.Binding.Name, GUID: b.Binding.GUID, InstanceName: b.Instance.Name, InstanceGUID: b.Instance.GUID, Tags: b.Instance.Tags,
		Credentials: b.Binding.Credentials, DrainURL: b.Binding.SyslogDrainURL, VolumeMounts: b.Binding.VolumeMounts}
	if b.Offering != nil && b.Plan != nil {
		s.Label, s.Plan = b.Offering.Name, b.Plan.Name
		s.Tags = slices.Concat(b.Offering.Tags, b.Instance.Tags)
	}
	return s
}

// Bindings are those that count of an app's, which are in the order in which
// they were made: of each instance the newest that was made without fault.
func Bindings(all []cf.AppService) []bindings.Binding {
	newest := map[string]int{}
	for i, b := range all {
		if b.Binding.LastOperation.Is(cf.OpCreate, cf.OpSucceeded) {
			newest[b.Instance.GUID] = i
		}
	}
	var list []bindings.Binding
	for i, b := range all {
		if at, ok := newest[b.Instance.GUID]; ok && at == i {
			list = append(list, shown(b))
		}
	}
	return list
}

// StartedWith keeps the bindings that a process is started with: it has those
// until it is restarted.
func StartedWith(list []bindings.Binding) json.RawMessage {
	text, err := json.Marshal(list)
	if err != nil {
		return nil // what is no JSON was never taken
	}
	return text
}

// startedWith is the owner with the bindings, and their form, that the process
// was started with.
func (in ProcessIn) startedWith() Owner {
	o := in.Owner
	app := *o.App
	app.BindingForm = string(StartedForm(in.Process, o.App))
	o.App, o.Bindings = &app, StartedBindings(in.Process, o.Bindings)
	return o
}

// StartedForm is the form of the bindings that a process was started with, or
// else that of its app.
func StartedForm(p *cf.Process, app *cf.App) bindings.Form {
	if len(p.Services) > 0 {
		return bindings.Form(p.BindingForm)
	}
	return bindings.Form(app.BindingForm)
}

// StartedBindings are those that StartedWith kept of a process, or else now.
func StartedBindings(p *cf.Process, now []bindings.Binding) []bindings.Binding {
	var list []bindings.Binding
	if len(p.Services) > 0 && json.Unmarshal(p.Services, &list) == nil {
		return list
	}
	return now
}

// services adds what the app is bound to, or where it can read that.
func (v *vars) services(o Owner) {
	if form := bindings.Form(o.App.BindingForm); form != bindings.FormNone {
		where := form.Variable()
		v.set(where.Name, where.Value)
		return
	}
	v.set(contract.EnvServices, VCAPServices(o.Bindings))
}

// files are those of the bindings that the app has now, in the form that the
// process was started with. Bindings that are not files in that form, since the
// app has chosen another for its next start, leave the files of this one.
func (in ProcessIn) files() []lrp.File {
	started := in.startedWith()
	now := started
	now.Bindings = in.Bindings
	if started.App.BindingForm != in.App.BindingForm && bindings.Fit(bindings.Form(started.App.BindingForm), now.Bindings, "") != nil {
		return started.files()
	}
	return now.files()
}

// files are those by which the app learns of its bindings; nil where it does by
// VCAP_SERVICES. The API took none that cannot be files; should there be some by
// now, as when a service instance was given another's name, the cell refuses
// them.
func (o Owner) files() []lrp.File {
	form := bindings.Form(o.App.BindingForm)
	if form == bindings.FormNone {
		return nil
	}
	files, _ := bindings.Files(form, o.Bindings)
	return append([]lrp.File{}, files...)
}

// VCAPServices is the variable of that name.
func VCAPServices(list []bindings.Binding) string {
	text, err := bindings.VCAPServices(list)
	if err != nil {
		return "{}" // what is no JSON was never taken
	}
	return string(text)
}

// database adds DATABASE_URL, the "uri" of the first binding that is of a
// database.
func (v *vars) database(list []bindings.Binding) {
	for _, b := range list {
		var c struct {
			URI any `json:"uri"`
		}
		if json.Unmarshal(b.Credentials, &c) != nil {
			continue
		}
		uri, _ := c.URI.(string)
		u, err := url.Parse(uri)
		if err != nil {
			continue
		}
		scheme, ok := contract.RailsScheme(u.Scheme)
		if !ok {
			continue
		}
		_, rest, _ := strings.Cut(uri, ":")
		v.set(contract.EnvDatabaseURL, scheme+":"+rest)
		return
	}
}
