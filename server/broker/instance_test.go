package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/osb/osbtest"
	"cupola/store"
	"cupola/store/cf"
)

// TestLives takes an instance with bindings of every kind from its making to
// its end, by a broker that does things at once and by one that takes its time.
func TestLives(t *testing.T) {
	for _, polls := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(polls, " polls"), func(t *testing.T) {
			w := newWorld(t)
			w.run()
			w.sync()
			w.broker.SetAsync(polls > 0, polls)
			i := w.create("db")
			row := w.getInstance(i)
			if op := row.LastOperation; op.State != cf.OpSucceeded || row.DashboardURL != "http://dashboard.example" || polls == 0 && string(row.BrokerMetadata) != `{"labels": {"from": "broker"}}` {
				t.Errorf("got %+v", row)
			}
			for _, kind := range []string{cf.BindingApp, cf.BindingKey} {
				b := w.binding(i, kind, kind)
				operation := map[string]string{cf.BindingApp: cf.JobCreateBinding, cf.BindingKey: cf.JobCreateKey}[kind]
				if j := w.job(operation, b, work()); j.State != cf.JobComplete {
					t.Fatalf("%s: %v", kind, j.Errors)
				}
				if got := w.getBinding(b); !strings.Contains(string(got.Credentials), "db://"+b) || got.LastOperation.State != cf.OpSucceeded {
					t.Errorf("%s: got %+v", kind, got)
				}
			}
			if n := len(w.broker.Things()); n != 3 {
				t.Errorf("the broker has %d things; want 3", n)
			}
			w.begins(i, cf.OpDelete)
			if j := w.job(cf.JobDeleteInstance, i, work()); j.State != cf.JobComplete {
				t.Fatalf("not deleted: %v", j.Errors)
			}
			w.quiet()
			if got := w.broker.Things(); len(got) != 0 || w.getInstance(i) != nil {
				t.Errorf("left over: %v %v", got, w.getInstance(i))
			}
			w.wantEvents(polls > 0)
		})
	}
}

// TestDeletionsShowThatTheyWait: while a binding is being deleted, the job of its
// instance's deletion is POLLING, by which clients know that they need not wait.
func TestDeletionsShowThatTheyWait(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	i := w.create("db")
	if j := w.job(cf.JobCreateKey, w.binding(i, cf.BindingKey, "key"), work()); j.State != cf.JobComplete {
		t.Fatalf("no key: %v", j.Errors)
	}
	w.broker.SetAsync(true, 1)
	w.broker.Fault("GET", "last_operation", osbtest.Answer(200, `{"state": "in progress"}`))
	w.begins(i, cf.OpDelete)
	job := w.begin(cf.JobDeleteInstance, i, work())
	w.until("polling", func(tx *store.Tx) bool {
		j, err := store.Jobs.Get(tx, job)
		return err == nil && j.State == cf.JobPolling
	})
	if n := len(w.broker.Things()); n != 2 {
		t.Errorf("the broker has %d things; want the instance and its key", n)
	}
	w.broker.Fault("GET", "last_operation", nil)
	if j := w.ended(job); j.State != cf.JobComplete {
		t.Errorf("not deleted: %v", j.Errors)
	}
}

func (w *world) wantEvents(async bool) {
	w.t.Helper()
	var got []string
	w.read(func(tx *store.Tx) error {
		events, err := store.Events.All(tx)
		for _, e := range events {
			if e.SpaceGUID != "" {
				got = append(got, strings.TrimPrefix(e.Type, "audit."))
			}
		}
		return err
	})
	var want []string
	for _, e := range []string{"service_instance create", "service_binding create", "service_key create", "service_binding delete", "service_key delete", "service_instance delete"} {
		what, verb, _ := strings.Cut(e, " ")
		if async {
			want = append(want, what+".start_"+verb)
		}
		want = append(want, what+"."+verb)
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		w.t.Error(d)
	}
}

// TestUpdates changes name, plan, tags and labels of an instance.
func TestUpdates(t *testing.T) {
	for _, polls := range []int{0, 2} {
		t.Run(fmt.Sprint(polls, " polls"), func(t *testing.T) {
			w := newWorld(t)
			w.run()
			w.sync()
			i := w.create("db")
			w.broker.SetAsync(polls > 0, polls)
			w.begins(i, cf.OpUpdate)
			name, tags, v := "renamed", []string{"t"}, "v"
			in := work()
			in.Change = &cf.ServiceChange{Name: &name, Tags: &tags, PlanGUID: w.plan("large").GUID, Labels: map[string]*string{"k": &v}}
			if j := w.job(cf.JobUpdateInstance, i, in); j.State != cf.JobComplete {
				t.Fatalf("not updated: %v", j.Errors)
			}
			got := w.getInstance(i)
			if got.Name != name || got.PlanGUID != w.plan("large").GUID || got.MaintenanceVersion != "2.0.0" || got.Labels["k"] != "v" || got.Tags[0] != "t" || got.DashboardURL != "http://dashboard.example" {
				t.Errorf("got %+v", got)
			}
			for _, r := range w.broker.Requests() {
				if r.Method != "PATCH" {
					continue
				}
				want := map[string]any{"plan_id": "small-id", "service_id": "db-id", "organization_id": "org-1", "space_id": "space-1", "maintenance_info": map[string]any{"version": "1.0.0"}}
				if d := cmp.Diff(want, r.Body["previous_values"]); d != "" || r.Body["context"].(map[string]any)["instance_name"] != name {
					t.Errorf("the broker was asked for %v, %s", r.Body, d)
				}
			}
		})
	}
}

// TestWhatBrokersAreTold looks at requests: headers, context and all.
func TestWhatBrokersAreTold(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	i := w.create("db")
	b := w.binding(i, cf.BindingApp, "b")
	w.job(cf.JobCreateBinding, b, work())
	requests := w.broker.Requests()
	for _, r := range requests {
		h := r.Header
		if h.Get("X-Broker-Api-Version") != "2.17" || h.Get("X-Broker-Api-Originating-Identity") != "cloudfoundry eyJ1c2VyX2lkIjoidXNlci0xIn0=" ||
			len(h.Get("X-Broker-Api-Request-Identity")) != 36 || h.Get("X-Api-Info-Location") != "api.test/" {
			t.Errorf("%s %s: got headers %v", r.Method, r.Path, h)
		}
	}
	note := func(of string) map[string]any { return map[string]any{"prefix.test/of": of} }
	where := map[string]any{"platform": "cloudfoundry", "organization_guid": "org-1", "organization_name": "org", "organization_annotations": note("org"),
		"space_guid": "space-1", "space_name": "dev", "space_annotations": note("space")}
	want := map[string]any{"service_id": "db-id", "plan_id": "small-id", "app_guid": "app-1", "parameters": map[string]any{"size": 1.0}, "context": where,
		"bind_resource": map[string]any{"app_guid": "app-1", "space_guid": "space-1", "app_annotations": note("app")}}
	bind := requests[len(requests)-1]
	if d := cmp.Diff(want, bind.Body); d != "" || bind.Query != "accepts_incomplete=true" || bind.Path != "/v2/service_instances/instance-db/service_bindings/binding-b" {
		t.Error(bind.Path, bind.Query, d)
	}
	where["instance_name"], where["instance_annotations"] = "db", note("instance")
	want = map[string]any{"service_id": "db-id", "plan_id": "small-id", "organization_guid": "org-1", "space_guid": "space-1", "parameters": map[string]any{"size": 1.0},
		"context": where, "maintenance_info": map[string]any{"version": "1.0.0"}}
	if d := cmp.Diff(want, requests[1].Body); d != "" {
		t.Error(d)
	}
}

// TestRotation binds an app twice to one instance: the second binding is sent
// as the successor of the first.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	i := w.create("db")
	for n, want := range []any{nil, "binding-0", "binding-1"} {
		b := w.binding(i, cf.BindingApp, fmt.Sprint(n))
		w.job(cf.JobCreateBinding, b, work())
		requests := w.broker.Requests()
		if got := requests[len(requests)-1].Body["predecessor_binding_id"]; got != want {
			t.Errorf("%s: got %v; want %v", b, got, want)
		}
	}
	large := w.instance("large", "large") // whose bindings are not rotatable
	w.job(cf.JobCreateInstance, large, work())
	for n := range 2 {
		b := w.binding(large, cf.BindingApp, fmt.Sprint("large", n))
		w.job(cf.JobCreateBinding, b, work())
		requests := w.broker.Requests()
		if got, ok := requests[len(requests)-1].Body["predecessor_binding_id"]; ok {
			t.Errorf("%s: got %v; the plan allows no rotation", b, got)
		}
	}
}

// TestParameters fetches what brokers keep of instances and bindings.
func TestParameters(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	i := w.create("db")
	b := w.binding(i, cf.BindingKey, "k")
	w.job(cf.JobCreateKey, b, work())
	l := New(w.config)
	for _, binding := range []string{"", b} {
		got, err := l.Parameters(t.Context(), i, binding, cf.Actor{})
		if err != nil || string(got) != `{"size":1}` {
			t.Errorf("%q: got %s, %v", binding, got, err)
		}
	}
	w.broker.Fault("GET", "instance", osbtest.Answer(500, `{"description": "no"}`))
	if _, err := l.Parameters(t.Context(), i, "", cf.Actor{}); err == nil || err.Error() != "Service broker error: no" {
		t.Errorf("got %v", err)
	}
}

// TestCatalogChanges takes plans and offerings away, with and without
// instances.
func TestCatalogChanges(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	small := w.plan("small").GUID
	w.create("db")
	w.broker.SetCatalog(`{"services": [{"id": "new", "name": "new", "description": "d", "bindable": false, "plans": [{"id": "p", "name": "p", "description": "d"}], "dashboard_client": {"id": "i", "secret": "s", "redirect_uri": "u"}}]}`)
	url := w.broker.URL
	j := w.job(cf.JobUpdateBroker, "broker-1", cf.BrokerUpdate{URL: &url, Before: cf.BrokerAvailable})
	if j.State != cf.JobComplete || len(j.Warnings) != 2 || !strings.Contains(j.Warnings[0], "Service Offering: db\nPlans deactivated: small\n") || !strings.Contains(j.Warnings[1], "dashboard client") {
		t.Fatalf("got %+v", j)
	}
	w.read(func(tx *store.Tx) error {
		plans, err := store.ServicePlans.All(tx)
		var got []string
		for _, p := range plans {
			got = append(got, fmt.Sprint(p.Name, " ", p.Active, " ", p.GUID == small))
		}
		if d := cmp.Diff([]string{"small false true", "p true false"}, got); d != "" {
			t.Error(d)
		}
		return err
	})
	w.broker.SetCatalog(osbtest.Catalog)
	w.job(cf.JobUpdateBroker, "broker-1", cf.BrokerUpdate{URL: &url, Before: cf.BrokerAvailable})
	if p := w.plan("small"); !p.Active || p.GUID != small {
		t.Errorf("the plan did not come back: %+v", p)
	}
}

// TestBrokerUpdateIsAllOrNothing renames a broker and gives it a URL that leads
// nowhere.
func TestBrokerUpdateIsAllOrNothing(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	name, nowhere := "renamed", "http://127.0.0.1:1"
	get := func() (b *cf.ServiceBroker) {
		w.read(func(tx *store.Tx) (err error) { b, err = store.ServiceBrokers.Get(tx, "broker-1"); return err })
		return b
	}
	j := w.job(cf.JobUpdateBroker, "broker-1", cf.BrokerUpdate{Name: &name, URL: &nowhere, Before: cf.BrokerAvailable})
	want := []cf.JobError{{Code: 10001, Title: "CF-ServiceBrokerApiUnreachable", Detail: "The service broker could not be reached"}}
	if d := cmp.Diff(want, j.Errors); d != "" || get().Name != "b" || get().State != cf.BrokerAvailable {
		t.Errorf("%s %+v", d, get())
	}
	if j := w.job(cf.JobUpdateBroker, "broker-1", cf.BrokerUpdate{Name: &name, Before: cf.BrokerAvailable}); j.State != cf.JobComplete || get().Name != name {
		t.Errorf("got %+v, %+v", j, get())
	}
	if j.Input != "" {
		t.Error("an ended job keeps what it was given")
	}
}

// TestRouteBindings binds a route to a route service.
func TestRouteBindings(t *testing.T) {
	w := newWorld(t)
	w.run()
	w.sync()
	i := w.instance("proxy", "only")
	w.job(cf.JobCreateInstance, i, work())
	w.write(func(tx *store.Tx) error {
		return store.RouteBindings.Insert(tx, &cf.RouteBinding{Resource: guid("rb-1"), InstanceGUID: i, RouteGUID: "route-1", LastOperation: cf.Begin(cf.OpCreate, cf.OpInitial, tx.Now)})
	})
	w.broker.Fault("PUT", "binding", osbtest.Answer(201, `{"route_service_url": "https://proxy.example"}`))
	if j := w.job(cf.JobCreateRouteBinding, "rb-1", work()); j.State != cf.JobComplete {
		t.Fatalf("got %+v", j)
	}
	w.read(func(tx *store.Tx) error {
		b, err := store.RouteBindings.Get(tx, "rb-1")
		if err == nil && b.RouteServiceURL != "https://proxy.example" {
			t.Errorf("got %+v", b)
		}
		return err
	})
	requests := w.broker.Requests()
	if got := requests[len(requests)-1].Body["bind_resource"]; cmp.Diff(map[string]any{"route": "hello.apps.test/x"}, got) != "" {
		t.Errorf("got %v", got)
	}
}
