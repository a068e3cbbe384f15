package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cupola/server/bindings"
	"cupola/store"
	"cupola/store/cf"
)

// bindingLimit is what an app is bound to, and the error when that is too much:
// when it is bound, when it chooses the form, and when it starts.
type bindingLimit struct {
	name        string
	form        bindings.Form
	credentials string
	n           int    // bindings; 0: one
	refused     string // "": it is taken
}

const (
	bound0 = "ups-0" // name of the first service instance
	guid36 = "00000000-0000-0000-0000-000000000000"
)

// filled is the credentials with which an app's bindings take so many bytes in a
// form, as Cloud Controller counts them.
func filled(t *testing.T, form bindings.Form, bytes int) string {
	t.Helper()
	b := bindings.Binding{InstanceName: bound0, InstanceGUID: guid36, GUID: guid36, Credentials: json.RawMessage(`{"k":""}`)}
	have := 0
	if form == bindings.FormNone {
		text, err := bindings.VCAPServices([]bindings.Binding{b})
		if err != nil {
			t.Fatal(err)
		}
		have = len(text)
	} else {
		files, err := bindings.Files(form, []bindings.Binding{b})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			have += len(f.Path) + len(f.Content)
		}
	}
	return fmt.Sprintf(`{"k":%q}`, strings.Repeat("x", bytes-have))
}

// manyBytes is how long the variable of 500 bindings is.
func manyBytes(t *testing.T) int {
	t.Helper()
	var all []bindings.Binding
	for n := range 500 {
		all = append(all, bindings.Binding{InstanceName: fmt.Sprintf("ups-%d", n), InstanceGUID: guid36, GUID: guid36, Credentials: json.RawMessage(`{"k":"v"}`)})
	}
	text, err := bindings.VCAPServices(all)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

func bindingLimits(t *testing.T) []bindingLimit {
	const (
		variable = 131071 - len("VCAP_SERVICES=")
		advice   = "VCAP_SERVICES has %d bytes, and a variable can have at most 131057: have the app read its bindings from files, with the app feature 'file-based-vcap-services' or 'file-based-servicebinding-io'"
		cannot   = "Cannot build service binding files for app - "
		tooLarge = cannot + "Bindings exceed the maximum allowed bytesize of 1000000: 1000001"
		texts    = `{"umlaut":"gr\u00fcn \u4e16\u754c \ud83c\udf7a","nul":"a\u0000b","elf":"\u007fELF\u0002\u0001\u0001","base64":"3q2+7w==","crlf":"a\r\nb"}`
	)
	list := []bindingLimit{
		{"130 KB", bindings.FormNone, filled(t, bindings.FormNone, variable), 0, ""},
		{"130 KB and a byte", bindings.FormNone, filled(t, bindings.FormNone, variable+1), 0, fmt.Sprintf(advice, variable+1)},
		{"1 MB in a variable", bindings.FormNone, filled(t, bindings.FormNone, 1_000_000), 0, fmt.Sprintf(advice, 1_000_000)},
		{"500 bindings in a variable", bindings.FormNone, `{"k":"v"}`, 500, fmt.Sprintf(advice, manyBytes(t))},
		{"upper case in a variable", bindings.FormNone, `{"jdbcUrl":"x"}`, 0, ""},
		{"upper case in a file", bindings.FormVCAP, `{"jdbcUrl":"x"}`, 0, ""},
		{"upper case, k8s", bindings.FormK8s, `{"jdbcUrl":"x"}`, 0, cannot + "Invalid file name: jdbcUrl"},
		{"upper case, servicebinding.io", bindings.FormServiceBindingIO, `{"jdbcUrl":"x"}`, 0,
			cannot + "Invalid file name: jdbcUrl in binding 'ups-0'. Name must match /^[a-z0-9\\-._]{1,253}$/; the app feature 'file-based-vcap-services' takes any key"},
	}
	for _, form := range []bindings.Form{bindings.FormNone, bindings.FormVCAP, bindings.FormK8s, bindings.FormServiceBindingIO} {
		list = append(list, bindingLimit{"any text " + string(form), form, texts, 0, ""})
		if form != bindings.FormNone {
			list = append(list, bindingLimit{"1 MB " + string(form), form, filled(t, form, 1_000_000), 0, ""},
				bindingLimit{"1 MB and a byte " + string(form), form, filled(t, form, 1_000_001), 0, tooLarge},
				bindingLimit{"500 bindings " + string(form), form, `{"k":"v"}`, 500, ""})
		}
	}
	return list
}

// TestLimitsOfBindings holds what is documented of bindings of odd sizes and
// contents. What is refused changes nothing.
func TestLimitsOfBindings(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute with the race detector, which sees nothing in it")
	}
	for _, l := range bindingLimits(t) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			l.n = max(1, l.n)
			l.atBind(t, w)
			l.atChoice(t, w)
			l.atStart(t, w)
		})
	}
}

// becomes is a step that ends as the limit says.
func (l bindingLimit) becomes(method, path, body string, status int) step {
	if l.refused == "" {
		return step{method: method, path: path, body: body, status: status}
	}
	return step{method: method, path: path, body: body, status: 422, want: detail(10008, l.refused)}
}

// atBind binds an app that has the form: first the others, then the last.
func (l bindingLimit) atBind(t *testing.T, w *world) {
	const bind = `{"type": "app", "relationships": {"app": {"data": {"guid": "app-1"}}, "service_instance": {"data": {"guid": "%s"}}}}`
	w.setForm(l.form)
	w.bindAll(l.n-1, `{"k":"v"}`)
	last := fmt.Sprintf("%036d", l.n)
	w.write(func(tx *store.Tx) error { return store.ServiceInstances.Insert(tx, upsOf(tx, l.n-1, "{}")) })
	if l.n == 1 {
		// What is bound already can be changed as far.
		w.run(t, []step{
			{method: "POST", path: "/v3/service_credential_bindings", body: fmt.Sprintf(bind, last), status: 201, save: "b"},
			l.becomes("PATCH", "/v3/service_instances/"+last, `{"credentials": `+l.credentials+`}`, 200),
			{method: "DELETE", path: "/v3/service_credential_bindings/{b}", status: 204},
		})
	}
	w.write(func(tx *store.Tx) error {
		i, err := store.ServiceInstances.Get(tx, last)
		if err == nil {
			i.Credentials = json.RawMessage(l.credentials)
			err = store.ServiceInstances.Update(tx, i)
		}
		return err
	})
	made := l.n
	if l.refused != "" {
		made--
	}
	w.run(t, []step{
		l.becomes("POST", "/v3/service_credential_bindings", fmt.Sprintf(bind, last), 201),
		{method: "GET", path: "/v3/service_credential_bindings?per_page=1&app_guids=app-1", status: 200, want: fmt.Sprintf(`{"pagination": {"total_results": %d}}`, made)},
	})
	w.unbindAll()
}

// atChoice makes an app that is bound choose the form, or leave another for it.
func (l bindingLimit) atChoice(t *testing.T, w *world) {
	form, before, enabled := l.form, bindings.FormNone, true
	if form == bindings.FormNone {
		form, before, enabled = bindings.FormVCAP, bindings.FormVCAP, false
	}
	w.setForm(before)
	w.bindAll(l.n, l.credentials)
	after := enabled
	if l.refused != "" {
		after = !enabled
	}
	path := "/v3/apps/app-1/features/" + string(form)
	w.run(t, []step{
		l.becomes("PATCH", path, fmt.Sprintf(`{"enabled": %v}`, enabled), 200),
		{method: "GET", path: path, status: 200, want: fmt.Sprintf(`{"enabled": %v}`, after)},
	})
}

// atStart starts an app that has come to have it all nevertheless.
func (l bindingLimit) atStart(t *testing.T, w *world) {
	w.setForm(l.form)
	state := "STARTED"
	if l.refused != "" {
		state = "STOPPED"
	}
	w.run(t, []step{
		l.becomes("POST", "/v3/apps/app-1/actions/start", "", 200),
		{method: "GET", path: "/v3/apps/app-1", status: 200, want: `{"state": "` + state + `"}`},
	})
}

func (w *world) setForm(form bindings.Form) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		app, err := store.Apps.Get(tx, "app-1")
		if err != nil {
			return err
		}
		app.BindingForm = string(form)
		return store.Apps.Update(tx, app)
	})
}

// upsOf is a user-provided service instance.
func upsOf(tx *store.Tx, n int, credentials string) *cf.ServiceInstance {
	return &cf.ServiceInstance{Resource: cf.Resource{GUID: fmt.Sprintf("%036d", n+1)}, Type: cf.UserProvided, Name: fmt.Sprintf("ups-%d", n), SpaceGUID: "space-1",
		Credentials: json.RawMessage(credentials), LastOperation: cf.Begin(cf.OpCreate, cf.OpSucceeded, tx.Now)}
}

// bindAll binds app-1 to service instances, past the API.
func (w *world) bindAll(n int, credentials string) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		for at := range n {
			i := upsOf(tx, at, credentials)
			if err := store.ServiceInstances.Insert(tx, i); err != nil {
				return err
			}
			b := &cf.ServiceBinding{Type: cf.BindingApp, InstanceGUID: i.GUID, AppGUID: "app-1", Credentials: i.Credentials, LastOperation: i.LastOperation}
			if err := store.ServiceBindings.Insert(tx, b); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) unbindAll() {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		list, err := store.ServiceBindings.All(tx)
		for _, b := range list {
			if err := store.ServiceBindings.Delete(tx, b.GUID); err != nil {
				return err
			}
		}
		instances, err2 := store.ServiceInstances.All(tx)
		for _, i := range instances {
			if err := store.ServiceInstances.Delete(tx, i.GUID); err != nil {
				return err
			}
		}
		return errors.Join(err, err2)
	})
}
