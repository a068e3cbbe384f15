package broker

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"cupola/server/osb"
	"cupola/server/osb/osbtest"
	"cupola/store"
	"cupola/store/cf"
)

// made answers as f does after the broker has done what it was asked for.
func (w *world) made(f http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		w.broker.Obey(r)
		f(rw, r)
	}
}

// slow answers after the client has given up.
func slow(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func away(rw http.ResponseWriter, r *http.Request) {
	http.Redirect(rw, r, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
}

func huge(rw http.ResponseWriter, _ *http.Request) {
	rw.WriteHeader(http.StatusCreated)
	for range 9 << 20 / 1024 {
		if _, err := rw.Write([]byte(strings.Repeat("x", 1024))); err != nil {
			return
		}
	}
}

// TestMisbehavingProvision makes a broker do all but what it should when it is
// asked for an instance. Whatever it made is gone afterwards, row and job say
// what happened, in Cloud Controller's words.
func TestMisbehavingProvision(t *testing.T) {
	const could = "provision could not be completed: "
	for name, c := range map[string]struct {
		f      http.HandlerFunc
		detail string
		asked  bool // to delete what it may have made
	}{
		"slow":                {slow, could + "The request to the service broker timed out", true},
		"500":                 {osbtest.Answer(500, `{"description": "on fire"}`), could + "Service broker error: on fire", true},
		"500 without reason":  {osbtest.Answer(503, `oops`), could + "The service broker returned an invalid response. Status Code: 503 Service Unavailable, Body: oops", true},
		"garbage":             {osbtest.Answer(201, `<html>`), could + "The service broker returned an invalid response: expected valid JSON object in body, broker returned '<html>'", true},
		"garbage with 200":    {osbtest.Answer(200, `[]`), could + "The service broker returned an invalid response: expected valid JSON object in body, broker returned '[]'", false},
		"wrong type":          {osbtest.Answer(201, `{"dashboard_url": 5}`), could + "The service broker returned an invalid response: \nThe property '#/dashboard_url' of type integer did not match one or more of the following types: string, null", true},
		"wrong operation":     {osbtest.Answer(202, `{"operation": {}}`), could + "The service broker returned an invalid response: \nThe property '#/operation' of type object did not match the following type: string", true},
		"204":                 {osbtest.Answer(204, ``), could + "The service broker returned an invalid response. Status Code: 204 No Content, Body: ", true},
		"400":                 {osbtest.Answer(400, `{"description": "no"}`), could + "Service broker error: no", false},
		"401":                 {osbtest.Answer(401, `{}`), could + "Authentication with the service broker failed. Double-check that the username and password are correct.", false},
		"404":                 {osbtest.Answer(404, `lost`), could + "The service broker rejected the request. Status Code: 404 Not Found, Body: lost", false},
		"408":                 {osbtest.Answer(408, `{}`), could + "The request to the service broker timed out", false},
		"409":                 {osbtest.Answer(409, `{}`), could + "Resource conflict", false},
		"410":                 {osbtest.Answer(410, `{}`), could + "The service broker returned an invalid response. Status Code: 410 Gone, Body: {}", false},
		"422 AsyncRequired":   {osbtest.Answer(422, `{"error": "AsyncRequired"}`), could + "This service plan requires client support for asynchronous service operations.", false},
		"422 Concurrency":     {osbtest.Answer(422, `{"error": "ConcurrencyError"}`), could + "The service broker could not perform this operation in parallel with other running operations", false},
		"422 MaintenanceInfo": {osbtest.Answer(422, `{"error": "MaintenanceInfoConflict"}`), could + "The service broker did not provide a reason for this conflict, please ensure the catalog is up to date and you are providing a version supported by this service plan", false},
		"422":                 {osbtest.Answer(422, `{"description": "odd"}`), could + "Service broker error: odd", false},
		"redirect":            {away, could + "The service broker returned an invalid response. Status Code: 307 Temporary Redirect, Body: ", false},
		"huge":                {huge, could + "The service broker returned an invalid response: the body is larger than 8388608 bytes", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.config.Client = osb.New(osb.Config{})
			w.run()
			w.sync()
			w.hurry(name)
			w.broker.Fault("PUT", "instance", c.f)
			if c.asked {
				w.broker.Fault("PUT", "instance", w.made(c.f))
			}
			i := w.instance("db", "small")
			w.failsWith(w.job(cf.JobCreateInstance, i, work()), c.detail)
			row := w.getInstance(i)
			if want := strings.TrimPrefix(c.detail, could); row.LastOperation.State != cf.OpFailed || row.LastOperation.Description != want {
				t.Errorf("the last operation is %+v; want %q", row.LastOperation, want)
			}
			w.quiet()
			w.wantGone(c.asked)
		})
	}
}

// hurry makes a loop run that does not wait long for a slow broker.
func (w *world) hurry(name string) {
	if name == "slow" {
		w.config.Client = osb.New(osb.Config{Timeout: 300 * time.Millisecond})
		w.run()
	}
}

func (w *world) failsWith(j *cf.Job, detail string) {
	w.t.Helper()
	if j.State != cf.JobFailed || len(j.Errors) != 1 || j.Errors[0].Detail != detail {
		w.t.Errorf("got %s %+v; want %s", j.State, j.Errors, detail)
	}
}

// wantGone wants nothing left at the broker, and that it was asked to delete,
// or not.
func (w *world) wantGone(asked bool) {
	w.t.Helper()
	deleted := false
	for _, r := range w.broker.Requests() {
		deleted = deleted || r.Method == "DELETE"
	}
	if deleted != asked || len(w.broker.Things()) != 0 {
		w.t.Errorf("deletion was asked for: %v, want %v; the broker has %v", deleted, asked, w.broker.Things())
	}
}

// TestMisbehavingBind is TestMisbehavingProvision for bindings.
func TestMisbehavingBind(t *testing.T) {
	const could = "bind could not be completed: "
	for name, c := range map[string]struct {
		f      http.HandlerFunc
		detail string
		asked  bool
	}{
		"cut":               {nil, "", true},
		"slow":              {slow, could + "The request to the service broker timed out", true},
		"500":               {osbtest.Answer(500, `{}`), could + "The service broker returned an invalid response. Status Code: 500 Internal Server Error, Body: {}", true},
		"secret garbage":    {osbtest.Answer(201, `"hunter2`), could + "The service broker returned an invalid response: expected valid JSON object in body, broker returned '[PRIVATE DATA HIDDEN]'", true},
		"wrong credentials": {osbtest.Answer(201, `{"credentials": "hunter2"}`), could + "The service broker returned an invalid response: expected credentials to be a valid JSON object", true},
		"mounts":            {osbtest.Answer(201, `{"volume_mounts": []}`), could + "The service broker returned an invalid response: The service is attempting to supply volume mounts from your application, but is not registered as a volume mount service. Please contact the service provider.", true},
		"plain route":       {osbtest.Answer(201, `{"route_service_url": "http://x.example"}`), could + "The service broker returned an invalid response. Status Code: 201 Created, Body: [PRIVATE DATA HIDDEN]", true},
		"409":               {osbtest.Answer(409, `{"description": "there is one"}`), could + "Service broker error: there is one", false},
		"422 RequiresApp":   {osbtest.Answer(422, `{"error": "RequiresApp"}`), could + "This service supports generation of credentials through binding an application only.", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.config.Client = osb.New(osb.Config{})
			w.run()
			w.sync()
			i := w.create("db")
			w.hurry(name)
			switch {
			case c.f == nil:
				w.broker.Fault("PUT", "binding", w.broker.Cut)
			case c.asked:
				w.broker.Fault("PUT", "binding", w.made(c.f))
			default:
				w.broker.Fault("PUT", "binding", c.f)
			}
			b := w.binding(i, cf.BindingApp, "b")
			j := w.job(cf.JobCreateBinding, b, work())
			if c.f != nil {
				w.failsWith(j, c.detail)
			} else if !strings.HasPrefix(j.Errors[0].Detail, could+"The request to the service broker failed: PUT ") {
				t.Errorf("got %+v", j.Errors)
			}
			w.quiet()
			if got := w.getBinding(b); got.LastOperation.State != cf.OpFailed || len(got.Credentials) > 0 {
				t.Errorf("got %+v", got)
			}
			if got := w.broker.Things(); len(got) != 1 {
				t.Errorf("the broker has %v; want the instance alone", got)
			}
		})
	}
}

// TestMisbehavingPolls has asynchronous operations go wrong after they began.
func TestMisbehavingPolls(t *testing.T) {
	w := newWorld(t)
	w.config.LongestRun = time.Second
	w.run()
	w.sync()
	w.broker.SetAsync(true, 1)
	// What is left of one is deleted while the next is made, and told the same:
	// that a deletion failed after many polls must not put off the next attempt for
	// long.
	for _, c := range []struct{ name, answer, detail, description string }{
		{"garbage", `{"state": "unheard of"}`, "The job execution has timed out.", "Service Broker failed to provision within the required time."},
		{"forever", `{"state": "in progress"}`, "The job execution has timed out.", "Service Broker failed to provision within the required time."},
		{"failed", `{"state": "failed", "description": "no room"}`, "create managed could not be completed: no room", "no room"},
	} {
		w.broker.Fault("GET", "last_operation", osbtest.Answer(200, c.answer))
		i := w.instance(c.name, "small")
		j := w.job(cf.JobCreateInstance, i, work())
		w.broker.Fault("GET", "last_operation", nil)
		w.failsWith(j, c.detail)
		if op := w.getInstance(i).LastOperation; op.State != cf.OpFailed || op.Description != c.description {
			t.Errorf("%s: got %+v", c.name, op)
		}
	}
	w.quiet()
	if got := w.broker.Things(); len(got) != 0 {
		t.Errorf("the broker has %v", got)
	}
}

// TestPollsAreNotLost makes a broker fail for a while when it is asked how an
// operation stands.
func TestPollsAreNotLost(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	w.broker.SetAsync(true, 2)
	n := 0
	w.broker.Fault("GET", "last_operation", func(rw http.ResponseWriter, r *http.Request) {
		if n++; n == 6 { // the client asks once at a time
			w.broker.Fault("GET", "last_operation", nil)
		}
		[]http.HandlerFunc{osbtest.Answer(500, "{}"), osbtest.Answer(404, "{}"), w.broker.Cut, osbtest.Answer(200, "{"), osbtest.Answer(410, "{}"), osbtest.Answer(401, "{}")}[n-1](rw, r)
	})
	w.create("db")
}

// TestOrphansAreTriedAgain makes a broker refuse for a while to delete what it
// should not have made, and then delete it asynchronously.
func TestOrphansAreTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	w.broker.Fault("PUT", "instance", w.made(osbtest.Answer(500, "{}")))
	n := 0
	w.broker.Fault("DELETE", "instance", func(rw http.ResponseWriter, r *http.Request) {
		if n++; n == 5 {
			w.broker.SetAsync(true, 3)
			w.broker.Fault("DELETE", "instance", nil)
		}
		osbtest.Answer(500, "{}")(rw, r)
	})
	i := w.instance("db", "small")
	w.job(cf.JobCreateInstance, i, work())
	w.quiet()
	w.wantGone(true)
}

// TestDeletesThatFail makes a broker refuse to delete; what it has stays a row
// that can be deleted later.
func TestDeletesThatFail(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	i := w.create("db")
	b := w.binding(i, cf.BindingKey, "k")
	w.job(cf.JobCreateKey, b, work())
	for _, c := range []struct{ kind, answer, detail string }{
		{"binding", `{"description": "busy"}`, "delete could not be completed: Service broker failed to delete service binding for instance db: Service broker error: busy"},
		{"instance", `{"description": "busy"}`, "delete could not be completed: Service instance db: Service broker error: busy"},
		{"instance", `{"error": "ConcurrencyError"}`, "An operation for service instance db is in progress."},
	} {
		w.broker.Fault("DELETE", c.kind, osbtest.Answer(422, c.answer))
		w.begins(i, cf.OpDelete)
		w.failsWith(w.job(cf.JobDeleteInstance, i, work()), c.detail)
		w.broker.Fault("DELETE", c.kind, nil)
		if got := w.getInstance(i); got == nil || got.LastOperation.State != cf.OpFailed {
			t.Errorf("got %+v", got)
		}
	}
	w.broker.Fault("DELETE", "instance", osbtest.Answer(410, "{}"))
	w.begins(i, cf.OpDelete)
	if j := w.job(cf.JobDeleteInstance, i, work()); j.State != cf.JobComplete || w.getInstance(i) != nil {
		t.Errorf("what is gone is not deleted: %+v", j)
	}
}

// TestMisbehavingCatalogs reads catalogs that are none.
func TestMisbehavingCatalogs(t *testing.T) {
	for name, c := range map[string]struct {
		f    http.HandlerFunc
		want cf.JobError
	}{
		"garbage": {osbtest.Answer(200, "<html>"), cf.JobError{Code: 270021, Title: "CF-ServiceBrokerRequestMalformed",
			Detail: "The service broker returned an invalid response: expected valid JSON object in body. Please check that the URL points to a valid service broker."}},
		"404": {osbtest.Answer(404, ""), cf.JobError{Code: 270020, Title: "CF-ServiceBrokerRequestRejected",
			Detail: "The service broker rejected the request. Status Code: 404 Not Found. Please check that the URL points to a valid service broker."}},
		"500": {osbtest.Answer(500, "{}"), cf.JobError{Code: 10001, Title: "CF-ServiceBrokerBadResponse",
			Detail: "The service broker returned an invalid response. Status Code: 500 Internal Server Error, Body: {}"}},
		"401": {osbtest.Answer(401, "{}"), cf.JobError{Code: 10001, Title: "CF-ServiceBrokerApiAuthenticationFailed",
			Detail: "Authentication with the service broker failed. Double-check that the username and password are correct."}},
		"empty": {osbtest.Answer(200, "{}"), cf.JobError{Code: 270012, Title: "CF-ServiceBrokerCatalogInvalid",
			Detail: "Service broker catalog is invalid: \nService broker must provide at least one service\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.run()
			w.broker.Fault("GET", "catalog", c.f)
			j := w.job(cf.JobSyncBroker, "broker-1", work())
			if j.State != cf.JobFailed || j.Errors[0] != c.want {
				t.Errorf("got %+v; want %+v", j.Errors, c.want)
			}
			w.read(func(tx *store.Tx) error {
				b, err := store.ServiceBrokers.Get(tx, "broker-1")
				if err == nil && b.State != cf.BrokerSyncFailed {
					t.Errorf("the broker is %s", b.State)
				}
				return err
			})
		})
	}
}

// TestRowsThatVanish takes the rows away while the broker is asked.
func TestRowsThatVanish(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	w.broker.Fault("PUT", "instance", func(rw http.ResponseWriter, r *http.Request) {
		w.write(func(tx *store.Tx) error { return store.ServiceInstances.Delete(tx, "instance-db") })
		w.broker.Obey(r)
		osbtest.Answer(201, "{}")(rw, r)
	})
	i := w.instance("db", "small")
	w.failsWith(w.job(cf.JobCreateInstance, i, work()), "The service instance could not be found: instance-db.")
	w.quiet()
	w.wantGone(true)
}

// TestDeleteWhileCreating deletes an instance that the broker is still making.
func TestDeleteWhileCreating(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	w.broker.SetAsync(true, 1000)
	i := w.instance("db", "small")
	creating := w.begin(cf.JobCreateInstance, i, work())
	w.until("begun", func(*store.Tx) bool { return w.getInstance(i).LastOperation.State == cf.OpInProgress })
	w.broker.SetAsync(false, 0)
	w.begins(i, cf.OpDelete)
	if j := w.job(cf.JobDeleteInstance, i, work()); j.State != cf.JobComplete {
		t.Errorf("got %+v", j)
	}
	if j := w.ended(creating); j.State != cf.JobFailed {
		t.Errorf("got %+v", j)
	}
	w.quiet()
	w.wantGone(true)
}
