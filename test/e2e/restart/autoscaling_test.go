package restart

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cupola/test/e2e"
)

// scaling is an entry of an app's scaling history as the API shows it.
type scaling struct {
	Status int
	Old    int `json:"old_instances"`
	New    int `json:"new_instances"`
	Reason string
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
	history := func() (all []scaling) {
		var list struct{ Resources []scaling }
		d.API("GET", app+"/scaling_histories", nil, &list)
		return list.Resources
	}
	e2e.Eventually(t, 4*time.Minute, func() string {
		if len(history()) == 0 {
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
	if got := history(); len(got) != 1 || got[0] != want {
		t.Errorf("the history is %+v; want %+v alone", got, want)
	}
	d.Running("busy", "web", 2)
}
