package broker

import (
	"net/http"
	"strings"
	"testing"

	"cupola/server/osb/osbtest"
	"cupola/store"
	"cupola/store/cf"
)

// TestBindingsThatDoNotFit makes a broker give credentials with which the app
// could not be started: the binding fails, nothing is kept of it, and the broker
// is asked to delete it again.
func TestBindingsThatDoNotFit(t *testing.T) {
	const tooLong, badKey = "a variable can have at most 131057", "Cannot build service binding files for app - Invalid file name: jdbcUrl"
	large := `{"credentials": {"k": "` + strings.Repeat("x", 131072) + `"}}`
	for name, c := range map[string]struct {
		form, answer string
		polls        int
		begins, says string // "": it is taken
	}{
		"too large for a variable":     {"", large, 0, "bind could not be completed: VCAP_SERVICES has ", tooLong},
		"too large, asynchronously":    {"", large, 1, "create could not be completed: VCAP_SERVICES has ", tooLong},
		"a key that is no file":        {"service-binding-k8s", `{"credentials": {"jdbcUrl": "x"}}`, 0, "bind could not be completed: ", badKey},
		"large, in a file":             {"file-based-vcap-services", large, 0, "", ""},
		"a key that is no file, in it": {"file-based-vcap-services", `{"credentials": {"jdbcUrl": "x"}}`, 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(func(tx *store.Tx) error {
				app, err := store.Apps.Get(tx, "app-1")
				if err != nil {
					return err
				}
				app.BindingForm = c.form
				return store.Apps.Update(tx, app)
			})
			w.run()
			w.sync()
			i := w.create("db")
			w.broker.SetAsync(c.polls > 0, c.polls)
			answers := w.made(osbtest.Answer(http.StatusCreated, c.answer))
			if c.polls > 0 {
				w.broker.Fault(http.MethodGet, "binding", osbtest.Answer(http.StatusOK, c.answer))
			} else {
				w.broker.Fault(http.MethodPut, "binding", answers)
			}
			b := w.binding(i, cf.BindingApp, "b")
			j := w.job(cf.JobCreateBinding, b, work())
			w.quiet()
			row := w.getBinding(b)
			if c.says == "" {
				if j.State != cf.JobComplete || len(row.Credentials) == 0 || len(w.broker.Things()) != 2 {
					t.Errorf("got %+v, and the broker has %v; want the binding", j.Errors, w.broker.Things())
				}
				return
			}
			if j.State != cf.JobFailed || !strings.HasPrefix(j.Errors[0].Detail, c.begins) || !strings.Contains(j.Errors[0].Detail, c.says) {
				t.Errorf("got %+v; want %s…%s", j.Errors, c.begins, c.says)
			}
			if !row.LastOperation.Is(cf.OpCreate, cf.OpFailed) || len(row.Credentials) > 0 {
				t.Errorf("got %+v, credentials of %d bytes; want that it has failed, and none", row.LastOperation, len(row.Credentials))
			}
			if things := w.broker.Things(); len(things) != 1 {
				t.Errorf("the broker has %v; want the instance alone", things)
			}
		})
	}
}
