package restart

import (
	"fmt"
	"testing"
	"time"

	"cupola/test/e2e"
)

// run is a run of a job of an app as the API shows it.
type run struct {
	GUID      string
	State     string
	Message   string
	Scheduled time.Time `json:"scheduled_time"`
}

// TestJobSurvivesKill kills the daemon while a job of an app runs, and again while the next
// run is due: the run ends, and the one that was due is made up for, once.
func TestJobSurvivesKill(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	var job struct{ GUID string }
	d.API("POST", "/jobs?app_guid="+d.App("hello-static"), e2e.Doc{"name": "beat", "command": "sleep 10", "memory_in_mb": 32, "disk_in_mb": 64}, &job)
	d.API("POST", "/jobs/"+job.GUID+"/schedules", e2e.Doc{"expression": "* * * * *"}, nil)
	last := func() (r run) {
		var list struct{ Resources []run }
		d.API("GET", "/jobs/"+job.GUID+"/history", nil, &list)
		if len(list.Resources) > 0 {
			return list.Resources[0]
		}
		return r
	}
	is := func(within time.Duration, what string, fits func(run) bool) (r run) {
		t.Helper()
		e2e.Eventually(t, within, func() string {
			if r = last(); fits(r) {
				return ""
			}
			return fmt.Sprintf("%s: got %+v", what, r)
		})
		return r
	}
	first := is(90*time.Second, "the first run", func(r run) bool { return r.State == "RUNNING" })
	d.Kill()
	d.Start()
	is(time.Minute, "its end", func(r run) bool { return r.GUID == first.GUID && r.State == "SUCCEEDED" })
	d.Kill()
	due := first.Scheduled.Add(time.Minute)
	time.Sleep(time.Until(due.Add(2 * time.Second)))
	d.Start()
	second := is(30*time.Second, "the run that was due", func(r run) bool { return r.State == "RUNNING" && r.Scheduled.Equal(due) })
	is(time.Minute, "its end", func(r run) bool { return r.GUID == second.GUID && r.State == "SUCCEEDED" })
	var list struct{ Resources []run }
	d.API("GET", "/jobs/"+job.GUID+"/history", nil, &list)
	seen := map[time.Time]bool{}
	for _, r := range list.Resources {
		if seen[r.Scheduled] {
			t.Errorf("it ran twice for %s: %+v", r.Scheduled, list.Resources)
		}
		seen[r.Scheduled] = true
	}
}
