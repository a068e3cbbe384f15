package restart

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// scaling is an entry of an app's scaling history as the API shows it.
type scaling struct {
	Status int
	Old    int `json:"old_instances"`
	New    int `json:"new_instances"`
	Reason string
}

// scalings are an app's.
func scalings(d *e2e.Daemon, app string) []scaling {
	d.T.Helper()
	var list struct{ Resources []scaling }
	d.API("GET", "/v1/apps/"+d.App(app)+"/scaling_histories", nil, &list)
	return list.Resources
}

// TestAutoscaling gives an app a policy of requests per second and sends it some: it is scaled, and
// the history says why. A daemon that is killed then knows that, and scales the app no further
// before it rested.
func TestAutoscaling(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	dir := t.TempDir()
	for name, content := range map[string]string{"Staticfile": "", "health": "well"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := d.Run("push", "--name", "busy", dir); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	app := "/v1/apps/" + d.App("busy")
	d.API("PUT", app+"/policy", e2e.Doc{"instance_min_count": 1, "instance_max_count": 3, "scaling_rules": []e2e.Doc{
		{"metric_type": "throughput", "operator": ">=", "threshold": 2, "adjustment": "+1", "breach_duration_secs": 60, "cool_down_secs": 3600}}}, nil)
	traffic := d.Send("busy.localhost", 10)
	e2e.Eventually(t, 4*time.Minute, func() string {
		if len(scalings(d, "busy")) == 0 {
			return "the app is not scaled"
		}
		return ""
	})
	d.Running("busy", "web", 2)
	if failed := traffic.End(t); len(failed) > 0 {
		t.Errorf("requests failed meanwhile: %+v", failed)
	}
	d.Kill()
	d.Start()
	want := scaling{Old: 1, New: 2, Reason: "+1 instance(s) because throughput >= 2rps for 60 seconds"}
	if got := scalings(d, "busy"); len(got) != 1 || got[0] != want {
		t.Errorf("the history is %+v; want %+v alone", got, want)
	}
	d.Running("busy", "web", 2)
}

// TestAutoscalerService makes an app that the autoscaler's service is bound to submit its own metrics, as
// App Autoscaler's docs have it: by its credentials and by its instance's certificate. It is scaled
// by them. The policy ends with the binding.
func TestAutoscalerService(t *testing.T) {
	t.Parallel()
	port := loopback.FreePorts(t, 1)[0]
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--https", fmt.Sprintf("127.0.0.1:%d", port))
	d.PushProbe("worker")
	d.WaitFor("/v3/service_plans?names=autoscaler-free-plan&available=true")
	change := func(method, path string, body any) {
		t.Helper()
		if err := d.Change(method, path, body); err != nil {
			t.Fatal(err)
		}
	}
	change("POST", "/v3/service_instances", e2e.Doc{"type": "managed", "name": "scaler",
		"relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces")), "service_plan": e2e.ToOne(d.First("/v3/service_plans?names=autoscaler-free-plan"))}})
	scaler := d.First("/v3/service_instances?names=scaler")
	const rule = `{"metric_type": "jobs", "operator": ">", "threshold": 10, "adjustment": "+1", "breach_duration_secs": 60}`
	change("POST", "/v3/service_credential_bindings", e2e.Doc{"type": "app",
		"relationships": e2e.Doc{"app": e2e.ToOne(d.App("worker")), "service_instance": e2e.ToOne(scaler)},
		"parameters":    e2e.Doc{"instance_min_count": 1, "instance_max_count": 2, "scaling_rules": []json.RawMessage{json.RawMessage(rule)}}})
	binding := d.First("/v3/service_credential_bindings?app_guids=" + d.App("worker"))
	var details struct {
		Credentials struct {
			Custom struct {
				URL, Username, Password string
				MTLS                    string `json:"mtls_url"`
			} `json:"custom_metrics"`
		}
	}
	d.API("GET", "/v3/service_credential_bindings/"+binding+"/details", nil, &details)
	c := details.Credentials.Custom
	if c.Username == "" || c.Password == "" || c.URL == "" || c.MTLS == "" {
		t.Fatalf("the credentials are %+v; want all of them", c)
	}
	asInstance := d.AsInstance("worker", "autoscaler.localhost")
	post := func(client *http.Client, at, password string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", at+"/v1/apps/"+d.App("worker")+"/metrics", strings.NewReader(`{"instance_index": 0, "metrics": [{"name": "jobs", "value": 20, "unit": "jobs"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "autoscaler.localhost"
		if password != "" {
			req.SetBasicAuth(c.Username, password)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if c.MTLS != fmt.Sprintf("https://autoscaler.localhost:%d", port) || c.URL != c.MTLS {
		t.Errorf("the credentials lead to %s and %s", c.URL, c.MTLS)
	}
	plain, secure := "http://"+d.Addr, fmt.Sprintf("https://127.0.0.1:%d", port)
	if got := []int{post(http.DefaultClient, plain, c.Password), post(http.DefaultClient, plain, "wrong"), post(http.DefaultClient, plain, ""), post(asInstance, secure, "")}; !slices.Equal(got, []int{200, 401, 401, 200}) {
		t.Errorf("by its password, another, none and its certificate it gets %v", got)
	}
	e2e.Eventually(t, 4*time.Minute, func() string {
		post(asInstance, secure, "")
		if h := scalings(d, "worker"); len(h) == 0 {
			return "the app is not scaled"
		}
		time.Sleep(5 * time.Second) // the autoscaler measures each 20 s
		return ""
	})
	d.Running("worker", "web", 2)
	want := scaling{Old: 1, New: 2, Reason: "+1 instance(s) because jobs > 10jobs for 60 seconds"}
	if got := scalings(d, "worker"); len(got) != 1 || got[0] != want {
		t.Errorf("the history is %+v; want %+v alone", got, want)
	}
	change("DELETE", "/v3/service_credential_bindings/"+binding, nil)
	if err := d.Client().Call(t.Context(), "GET", "/v1/apps/"+d.App("worker")+"/policy", nil, nil); err == nil {
		t.Error("the policy outlives the binding")
	}
	change("POST", "/v3/service_credential_bindings", e2e.Doc{"type": "key", "name": "key", "relationships": e2e.Doc{"service_instance": e2e.ToOne(scaler)},
		"parameters": e2e.Doc{"schema-version": "0.1", "configuration": e2e.Doc{"app_guid": d.App("worker")}, "instance_min_count": 1, "instance_max_count": 3, "scaling_rules": []json.RawMessage{json.RawMessage(rule)}}})
	key := d.First("/v3/service_credential_bindings?names=key")
	d.API("GET", "/v3/service_credential_bindings/"+key+"/details", nil, &details)
	c = details.Credentials.Custom
	var policy struct {
		Most int `json:"instance_max_count"`
	}
	if d.API("GET", "/v1/apps/"+d.App("worker")+"/policy", nil, &policy); policy.Most != 3 || post(http.DefaultClient, plain, c.Password) != 200 {
		t.Errorf("the service key has the policy %+v, and the credentials %+v", policy, c)
	}
	change("DELETE", "/v3/service_credential_bindings/"+key, nil)
}
