package restart

import (
	"fmt"
	"slices"
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
	d.API("POST", "/jobs?app_guid="+d.App("hello-static"), e2e.Doc{"name": "beat", "command": "sleep 2; echo begun; sleep 10", "memory_in_mb": 32, "disk_in_mb": 64}, &job)
	d.API("POST", "/jobs/"+job.GUID+"/schedules", e2e.Doc{"expression": "* * * * *"}, nil)
	history := func() []run {
		var list struct{ Resources []run }
		d.API("GET", "/jobs/"+job.GUID+"/history", nil, &list)
		return list.Resources
	}
	is := func(within time.Duration, what string, fits func(run) bool) (r run) {
		t.Helper()
		e2e.Eventually(t, within, func() string {
			all := history()
			if i := slices.IndexFunc(all, fits); i >= 0 {
				r = all[i]
				return ""
			}
			return fmt.Sprintf("%s: got %+v", what, all)
		})
		return r
	}
	first := is(3*time.Minute, "the first run", func(r run) bool { return r.State == "RUNNING" })
	d.Logged("hello-static", "begun") // a task whose start is not recorded yet would be lost
	d.Kill()
	d.Start()
	is(2*time.Minute, "its end", func(r run) bool { return r.GUID == first.GUID && r.State == "SUCCEEDED" })
	d.Kill()
	due := first.Scheduled.Add(time.Minute)
	time.Sleep(time.Until(due.Add(2 * time.Second)))
	d.Start()
	is(2*time.Minute, "the run that was due", func(r run) bool { return r.State == "SUCCEEDED" && r.Scheduled.Equal(due) })
	seen := map[time.Time]bool{}
	for _, r := range history() {
		if seen[r.Scheduled] {
			t.Errorf("it ran twice for %s: %+v", r.Scheduled, history())
		}
		seen[r.Scheduled] = true
	}
}
