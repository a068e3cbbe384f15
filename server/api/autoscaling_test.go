package api

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/server/control/autoscaling"
	"cupola/store"
	"cupola/store/cf"
)

// TestScalingPolicies sets, shows and deletes a policy by App Autoscaler's API.
func TestScalingPolicies(t *testing.T) {
	w := newWorld(t)
	const path, policy = "/v1/apps/app-1/policy", `{"instance_min_count": 1, "instance_max_count": 4, "scaling_rules": [{"metric_type": "cpu", "threshold": 50, "operator": ">", "adjustment": "+1"}]}`
	w.run(t, []step{
		{method: "GET", path: "/health", status: 200, want: `{"alive": "true"}`},
		{as: "space_developer", method: "GET", path: path, status: 404, want: `{"code": "Not Found", "message": "Policy not found"}`},
		{method: "PUT", path: path, body: `{"instance_min_count": 0, "instance_max_count": "4"}`, status: 400, want: `[{"context": "(root).instance_max_count", "description": "Invalid type. Expected: integer, given: string"},
			{"context": "(root).instance_min_count", "description": "Must be greater than or equal to 1"}, {"context": "(root)", "description": "Must validate at least one schema (anyOf): scaling_rules or schedules is required"}]`},
		{method: "GET", path: path, status: 404},
		{method: "PUT", path: path, body: policy, status: 200, want: policy},
		{method: "GET", path: path, status: 200, want: policy},
		{method: "PUT", path: path, body: strings.Replace(policy, `"instance_max_count": 4`, `"instance_max_count": 5`, 1), status: 200, want: `{"instance_max_count": 5}`},
		{method: "PUT", path: path, body: strings.Repeat(" ", 70<<10), status: 413},
		{method: "PUT", path: "/v1/apps/none/policy", body: policy, status: 404, want: `{"code": "Not Found", "message": "App not found"}`},
		{method: "GET", path: "/v1/apps/app-1/scaling_histories?order=desc&page=1", status: 200, want: `{"total_results": 0, "total_pages": 0, "page": 1, "resources": []}`},
		{method: "GET", path: "/v1/apps/app-1/scaling_histories?start-time=x", status: 400},
		{method: "GET", path: "/v1/apps/app-1/aggregated_metric_histories/jobs", status: 200, want: `{"resources": []}`},
		{method: "GET", path: "/v1/apps/app-1/aggregated_metric_histories/cpu", status: 200, want: `{"resources": []}`},
		{as: "space_auditor", method: "GET", path: path, status: 200},
		{as: "space_auditor", method: "DELETE", path: path, status: 403, want: `{"code": "Forbidden", "message": "You are not authorized to perform the requested action"}`},
		{as: "space_developer", method: "DELETE", path: path, status: 200, want: `{}`},
		{method: "DELETE", path: path, status: 404},
	})
	w.hasEvents(t, "audit.app.scaling_policy.set audit.app.scaling_policy.set audit.app.scaling_policy.delete")
}

// scaledWorld has app-1 running with a policy, and a clock and measurements of its own.
type scaledWorld struct {
	*world
	now time.Time
	cpu float64
}

func newScaledWorld(t *testing.T, policy string) *scaledWorld {
	w := &scaledWorld{world: newWorld(t), now: time.Now()}
	w.write(func(tx *store.Tx) error { return seedApp(tx, "app-2", "other") })
	w.api.Autoscaler.Now = func() time.Time { return w.now }
	w.api.Autoscaler.Gauges = func(string, time.Time) []map[string]float64 { return []map[string]float64{{"cpu": w.cpu}} }
	w.changeApp(func(a *cf.App) { a.State = cf.Started })
	w.run(t, []step{{method: "PUT", path: "/v1/apps/app-1/policy", body: policy, status: 200}})
	return w
}

func (w *scaledWorld) changeApp(f func(*cf.App)) {
	w.write(func(tx *store.Tx) error {
		a, err := store.Apps.Get(tx, "app-1")
		if err != nil {
			return err
		}
		f(a)
		return store.Apps.Update(tx, a)
	})
}

// pass lets a time pass, in which the app is measured.
func (w *scaledWorld) pass(d time.Duration, cpu float64) {
	w.t.Helper()
	for w.cpu = cpu; d > 0; d -= 20 * time.Second {
		w.now = w.now.Add(20 * time.Second)
		if err := w.api.Autoscaler.Once(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// is checks how many instances there are, and the history, the oldest entry first.
func (w *scaledWorld) is(instances int, history ...string) {
	w.t.Helper()
	var got []string
	w.write(func(tx *store.Tx) error {
		p, err := store.Processes.First(tx, store.Query{Where: map[string][]string{"app_guids": {"app-1"}, "types": {"web"}}})
		if err == nil && p.Instances != instances {
			w.t.Errorf("%d instances; want %d", p.Instances, instances)
		}
		all, listed := store.ScalingEvents.By(tx, "app_guids", "app-1")
		for _, e := range all {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%d>%d %s %s%s", e.Old, e.New, e.Reason, e.Message, e.Error)))
		}
		return errors.Join(err, listed)
	})
	if !slices.Equal(got, history) {
		w.t.Errorf("the history is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(history, "\n"))
	}
}

const upAndDown = `{"instance_min_count": 1, "instance_max_count": 3, "scaling_rules": [
	{"metric_type": "cpu", "threshold": 50, "operator": ">=", "adjustment": "+1", "breach_duration_secs": 60, "cool_down_secs": 120},
	{"metric_type": "cpu", "threshold": 10, "operator": "<", "adjustment": "-5", "breach_duration_secs": 60, "cool_down_secs": 60}]}`

// TestRulesScale has an app under load and without, for minutes of its own clock.
func TestRulesScale(t *testing.T) {
	w := newScaledWorld(t, upAndDown)
	w.run(t, []step{{method: "POST", path: "/v3/apps/app-1/processes/web/actions/scale", body: `{"instances": 1}`, status: 202}})
	const up, down = "+1 instance(s) because cpu >= 50% for 60 seconds", "-5 instance(s) because cpu < 10% for 60 seconds"
	w.pass(80*time.Second, 90)
	w.is(1) // it was not measured for longer than the breach duration
	w.pass(20*time.Second, 90)
	w.is(2, "1>2 "+up)
	w.pass(100*time.Second, 90)
	w.is(2, "1>2 "+up) // it rests
	w.pass(20*time.Second, 90)
	w.is(3, "1>2 "+up, "2>3 "+up)
	w.pass(5*time.Minute, 90)
	w.is(3, "1>2 "+up, "2>3 "+up) // no more than three
	w.pass(time.Minute, 5)
	w.is(3, "1>2 "+up, "2>3 "+up)
	w.pass(20*time.Second, 5)
	w.is(1, "1>2 "+up, "2>3 "+up, "3>1 "+down+" limited by min instances 1")
	w.hasEvents(t, "audit.app.scaling_policy.set audit.app.process.scale audit.app.process.scale audit.app.process.scale audit.app.process.scale")
	w.run(t, []step{
		{method: "GET", path: "/v1/apps/app-1/scaling_histories?order-direction=asc&results-per-page=2", status: 200, want: `{"total_results": 3, "total_pages": 2, "page": 1,
			"resources": [{"app_id": "app-1", "status": 0, "scaling_type": 0, "old_instances": 1, "new_instances": 2, "reason": "` + up + `"}, {"old_instances": 2}]}`},
		{method: "GET", path: "/v1/apps/app-1/scaling_histories", status: 200, want: `{"resources": [{"old_instances": 3, "new_instances": 1, "message": "limited by min instances 1"}, {}, {}]}`},
		{method: "GET", path: "/v1/apps/app-1/aggregated_metric_histories/cpu?order=desc&results-per-page=1", status: 200, want: `{"resources": [{"name": "cpu", "unit": "%", "value": "5"}]}`},
	})
}

// TestRulesLeaveAlone has an app that breaches a rule, and must not be scaled for another reason.
func TestRulesLeaveAlone(t *testing.T) {
	for name, prepare := range map[string]func(*scaledWorld){
		"it is stopped": func(w *scaledWorld) { w.changeApp(func(a *cf.App) { a.State = cf.Stopped }) },
		"it sleeps": func(w *scaledWorld) {
			web := w.web()
			w.write(func(tx *store.Tx) error {
				return store.Sleeps.Insert(tx, &cf.Sleep{ProcessGUID: web, AppGUID: "app-1", State: cf.SleepFrozen})
			})
		},
		"its policy is gone": func(w *scaledWorld) {
			w.run(w.t.(*testing.T), []step{{method: "DELETE", path: "/v1/apps/app-1/policy", status: 200}})
		},
		"nothing is measured": func(w *scaledWorld) {
			w.api.Autoscaler.Gauges = func(string, time.Time) []map[string]float64 { return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScaledWorld(t, upAndDown)
			w.run(t, []step{{method: "POST", path: "/v3/apps/app-1/processes/web/actions/scale", body: `{"instances": 1}`, status: 202}})
			prepare(w)
			w.pass(5*time.Minute, 90)
			w.is(1)
		})
	}
}

func (w *scaledWorld) web() (guid string) {
	w.write(func(tx *store.Tx) error {
		p, err := store.Processes.First(tx, store.Query{Where: map[string][]string{"app_guids": {"app-1"}, "types": {"web"}}})
		if err == nil {
			guid = p.GUID
		}
		return err
	})
	return guid
}

// TestScalingIsRefused has a quota without room: the history says so once, and the app is scaled
// when there is.
func TestScalingIsRefused(t *testing.T) {
	w := newScaledWorld(t, upAndDown)
	quota := func(limit string) step {
		return step{method: "PATCH", path: "/v3/organization_quotas/{quota}", body: `{"apps": {"total_instances": ` + limit + `}}`, status: 200}
	}
	w.run(t, []step{
		{method: "POST", path: "/v3/apps/app-1/processes/web/actions/scale", body: `{"instances": 1}`, status: 202},
		{as: "admin", method: "POST", path: "/v3/organization_quotas", body: `{"name": "small", "relationships": {"organizations": {"data": [{"guid": "org-1"}]}}}`, status: 201, save: "quota"},
		quota("1"),
	})
	const up = "+1 instance(s) because cpu >= 50% for 60 seconds"
	refused := "1>-1 " + up + " failed to set app instances: "
	w.pass(5*time.Minute, 90)
	w.is(1, refused+"app_instance_limit app_instance_limit_exceeded")
	w.run(t, []step{quota("null")})
	w.pass(2*time.Minute, 90)
	w.is(2, refused+"app_instance_limit app_instance_limit_exceeded", "1>2 "+up)
	w.run(t, []step{{as: "space_developer", method: "GET", path: "/v1/apps/app-1/scaling_histories?order=asc", status: 200,
		want: `{"resources": [{"status": 1, "new_instances": -1, "error": "failed to set app instances: app_instance_limit app_instance_limit_exceeded"}, {"status": 0}]}`}})
}

// TestSchedulesScale makes a schedule begin and end, and other limits for rules meanwhile.
func TestSchedulesScale(t *testing.T) {
	at := func(d time.Duration) string { return time.Now().UTC().Add(d).Format("2006-01-02T15:04") }
	w := newScaledWorld(t, strings.Replace(upAndDown, `"scaling_rules"`, fmt.Sprintf(`"schedules": {"timezone": "UTC", "specific_date": [
		{"start_date_time": %q, "end_date_time": %q, "instance_min_count": 2, "instance_max_count": 5, "initial_min_instance_count": 4}]}, "scaling_rules"`, at(time.Hour), at(2*time.Hour)), 1))
	w.run(t, []step{{method: "POST", path: "/v3/apps/app-1/processes/web/actions/scale", body: `{"instances": 1}`, status: 202}})
	w.pass(20*time.Second, 30)
	w.is(1)
	w.now = w.now.Add(time.Hour)
	w.pass(time.Minute, 30)
	begins := "1>4 schedule starts with instance min 2, instance max 5 and instance min initial 4 limited by min instances 4"
	w.is(4, begins)
	w.pass(2*time.Minute, 90)
	up := "4>5 +1 instance(s) because cpu >= 50% for 60 seconds"
	w.is(5, begins, up)
	w.now = w.now.Add(time.Hour)
	w.pass(20*time.Second, 30)
	w.is(3, begins, up, "5>3 schedule ends limited by max instances 3")
}

// TestRequestsAreMeasured counts requests to an app with a policy: between two measurements, and
// not at all after a count that began again.
func TestRequestsAreMeasured(t *testing.T) {
	w := newScaledWorld(t, upAndDown)
	w.run(t, []step{{method: "POST", path: "/v3/apps/app-1/processes/web/actions/scale", body: `{"instances": 2}`, status: 202}})
	count := int64(0)
	w.api.Autoscaler.Requests = func(string) (int64, time.Duration) { return count, time.Duration(count) * 30 * time.Millisecond }
	for _, count = range []int64{1000, 1100, 1101, 7, 7} {
		w.pass(20*time.Second, 1)
	}
	for metric, want := range map[autoscaling.Metric][]int64{autoscaling.Throughput: {3, 1, 0}, autoscaling.ResponseTime: {30, 30, 0}} {
		var got []int64
		for _, p := range w.api.Autoscaler.Points("app-1", metric) {
			got = append(got, p.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d; want %d", metric, got, want)
		}
	}
}

const ofJobs = `{"instance_min_count": 1, "instance_max_count": 3, "scaling_rules": [{"metric_type": "jobs", "threshold": 10, "operator": ">", "adjustment": "+1", "breach_duration_secs": 60}]%s}`

// TestCustomMetrics submits metrics of app-1 as different clients, and has it scaled by them.
func TestCustomMetrics(t *testing.T) {
	w := newScaledWorld(t, fmt.Sprintf(ofJobs, ""))
	w.run(t, []step{{method: "POST", path: "/v3/apps/app-1/processes/web/actions/scale", body: `{"instances": 1}`, status: 202}})
	w.bindScaling("instance", "app-1", "app-2")
	const jobs = `{"instance_index": 0, "metrics": [{"name": "jobs", "value": %v, "unit": "jobs"}]}`
	of := func(app string) autoscaling.Submitter {
		return autoscaling.Submitter{Certificate: &x509.Certificate{Subject: pkix.Name{OrganizationalUnit: []string{"organization:o", "space:s", "app:" + app}}}}
	}
	own := autoscaling.Submitter{Username: "binding-app-1", Password: "secret-app-1"}
	for name, c := range map[string]struct {
		by     autoscaling.Submitter
		body   string
		status int
		want   string
	}{
		"its credentials":       {own, fmt.Sprintf(jobs, 1), 200, ""},
		"its certificate":       {of("app-1"), fmt.Sprintf(jobs, 1.5), 200, ""},
		"nobody":                {autoscaling.Submitter{}, fmt.Sprintf(jobs, 1), 401, `{"code":"Unauthorized","message":"Unauthorized"}`},
		"another password":      {autoscaling.Submitter{Username: "binding-app-1", Password: "secret-app-2"}, fmt.Sprintf(jobs, 1), 401, "Unauthorized"},
		"another app's":         {autoscaling.Submitter{Username: "binding-app-2", Password: "secret-app-2"}, fmt.Sprintf(jobs, 1), 401, "Unauthorized"},
		"another app":           {of("app-2"), fmt.Sprintf(jobs, 1), 403, `{"code":"Forbidden","message":"Unauthorized"}`},
		"a certificate of none": {of(""), fmt.Sprintf(jobs, 1), 403, "Unauthorized"},
		"no JSON":               {own, `[`, 400, "Error unmarshaling custom metrics request body"},
		"no number":             {own, fmt.Sprintf(jobs, `"1"`), 400, "Error unmarshaling custom metrics request body"},
		"no metrics":            {own, `{"instance_index": 0}`, 400, "Error parsing request body"},
		"a measured metric":     {own, `{"metrics": [{"name": "cpu", "value": 1}]}`, 400, "Custom Metric: cpu matches with standard metrics name"},
		"another metric":        {own, `{"metrics": [{"name": "queue", "value": 1}]}`, 400, "Custom Metric: queue does not match with metrics defined in policy"},
		"too much":              {own, strings.Repeat(" ", 65<<10), 413, "larger than"},
	} {
		if status, got := w.submit("app-1", c.by, c.body); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %d %s; want %d %s", name, status, got, c.status, c.want)
		}
	}
	w.pass(20*time.Second, 0)
	if got := w.api.Autoscaler.Points("app-1", "jobs"); len(got) != 1 || got[0].Value != 2 || got[0].Unit != "jobs" {
		t.Errorf("got %v; want the mean of 1 and 1.5, rounded up", got)
	}
	for range 4 {
		w.submit("app-1", own, fmt.Sprintf(jobs, 11))
		w.pass(20*time.Second, 0)
	}
	w.is(2, "1>2 +1 instance(s) because jobs > 10jobs for 60 seconds")
}

// TestMetricsOfBoundApps makes an app submit another one's metrics, which its policy allows those that
// are bound to the same instance.
func TestMetricsOfBoundApps(t *testing.T) {
	w := newScaledWorld(t, fmt.Sprintf(ofJobs, `, "configuration": {"custom_metrics": {"metric_submission_strategy": {"allow_from": "bound_app"}}}`))
	const body = `{"instance_index": 0, "metrics": [{"name": "jobs", "value": 3}, {"name": "queue", "value": 3}]}`
	by := autoscaling.Submitter{Certificate: &x509.Certificate{Subject: pkix.Name{OrganizationalUnit: []string{"app:app-2"}}}}
	status := func() int { n, _ := w.submit("app-1", by, body); return n }
	if got := status(); got != 401 {
		t.Errorf("an app that is not bound: got %d", got)
	}
	w.bindScaling("instance", "app-1")
	w.bindScaling("another", "app-2")
	if got := status(); got != 401 {
		t.Errorf("an app that is bound to another instance: got %d", got)
	}
	w.write(func(tx *store.Tx) error { return store.ScalingInstances.Delete(tx, "another") })
	w.bindScaling("", "app-2")
	if got := status(); got != 200 {
		t.Errorf("an app that is bound to the same instance: got %d", got)
	}
	w.pass(20*time.Second, 0)
	if got := w.api.Autoscaler.Points("app-1", "queue"); len(got) != 0 {
		t.Errorf("got %v of a metric that no rule looks at", got)
	}
	if got := w.api.Autoscaler.Points("app-1", "jobs"); len(got) != 1 || got[0].Value != 3 {
		t.Errorf("got %v; want 3", got)
	}
}

// bindScaling binds apps to a new instance of the autoscaler's service, or to the first one.
func (w *scaledWorld) bindScaling(instance string, apps ...string) {
	w.write(func(tx *store.Tx) error {
		if instance != "" {
			if err := store.ScalingInstances.Insert(tx, &cf.ScalingInstance{Resource: cf.Resource{GUID: instance}}); err != nil {
				return err
			}
			i := &cf.ServiceInstance{Resource: cf.Resource{GUID: instance}, Name: instance, Type: cf.UserProvided, SpaceGUID: "space-1"}
			if err := store.ServiceInstances.Insert(tx, i); err != nil {
				return err
			}
		}
		for _, app := range apps {
			b := &cf.ScalingBinding{Resource: cf.Resource{GUID: "binding-" + app}, InstanceGUID: cmp.Or(instance, "instance"), AppGUID: app, Password: "secret-" + app}
			if err := store.ScalingBindings.Insert(tx, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// submit submits metrics of an app, and returns the answer.
func (w *scaledWorld) submit(app string, by autoscaling.Submitter, body string) (status int, text string) {
	r := httptest.NewRequestWithContext(w.t.Context(), "POST", "/v1/apps/"+app+"/metrics", strings.NewReader(body))
	if by.Username != "" {
		r.SetBasicAuth(by.Username, by.Password)
	}
	if by.Certificate != nil {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{by.Certificate}, VerifiedChains: [][]*x509.Certificate{{by.Certificate}}}
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}
