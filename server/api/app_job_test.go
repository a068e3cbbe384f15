package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// TestAppJobs makes, schedules and deletes jobs of an app by the API of Cloud Foundry's
// scheduler.
func TestAppJobs(t *testing.T) {
	w := newWorld(t)
	schedule := func(body string, status int, want string) step {
		return step{as: "space_developer", method: "POST", path: "/jobs/{job}/schedules", body: body, status: status, want: want}
	}
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/jobs?app_guid=app-1", body: `{"guid": "", "name": "nightly", "command": "bin/clean", "disk_in_mb": 1024, "memory_in_mb": 64, "state": ""}`, status: 201, save: "job",
			want: `{"name": "nightly", "command": "bin/clean", "memory_in_mb": 64, "disk_in_mb": 1024, "timeout_in_seconds": 86400, "state": "PENDING", "app_guid": "app-1", "space_guid": "space-1"}`},
		{method: "POST", path: "/jobs?app_guid=app-1", body: `{"name": "nightly", "command": "x"}`, status: 422, want: detail(10008, "A job with the name 'nightly' exists in this space: choose another name.")},
		{method: "POST", path: "/jobs?app_guid=none", body: `{"name": "x", "command": "x"}`, status: 422, want: detail(10008, "The query parameter app_guid must be the GUID of an app that you have access to.")},
		{method: "POST", path: "/jobs?app_guid=app-1", body: `{"name": " ", "command": "", "memory_in_mb": -1, "timeout_in_seconds": 0}`, status: 422,
			want: detail(10008, "Name must not be blank, Command must not be blank, Memory in mb must be from 0 (the default of tasks) to 2147483647, Timeout in seconds must be from 1 to 604800")},
		{method: "POST", path: "/jobs?app_guid=app-1", body: `{"name": "a\nb", "command": "x"}`, status: 422, want: detail(10008, "Name must have at most 100 characters, all printable")},
		schedule(`{"enabled": true, "expression": "*/5 * ? * *", "expression_type": "cron_expression"}`, 201, `{"enabled": true, "expression": "*/5 * ? * *", "expression_type": "cron_expression", "time_zone": "UTC", "job_guid": "{job}"}`),
		{method: "POST", path: "/jobs/{job}/schedules", body: `{"expression": "0 3 * * *", "time_zone": "Europe/Berlin"}`, status: 201, save: "zoned", want: `{"expression": "CRON_TZ=Europe/Berlin 0 3 * * *", "time_zone": "Europe/Berlin"}`},
		schedule(`{"expression": "0 3 * *"}`, 422, detail(10008, `Expression is invalid: cron expression "0 3 * *" has 4 fields: it must have five (MIN HOUR DAY-OF-MONTH MONTH DAY-OF-WEEK), as in "30 2 * * *"`)),
		schedule(`{"expression": "@daily", "time_zone": "Mars"}`, 422, detail(10008, `Expression is invalid: time zone "Mars" is invalid: use a name like Europe/Berlin or UTC`)),
		schedule(`{"expression": "@daily", "expression_type": "iso"}`, 422, detail(10008, `Expression type must be "cron_expression"`)),
		{method: "PATCH", path: "/jobs/{job}/schedules/{zoned}", body: `{"enabled": false}`, status: 200, want: `{"enabled": false, "next_time": null}`},
		{method: "GET", path: "/jobs/{job}/schedules", status: 200, want: `{"pagination": {"total_results": 2}, "resources": [{"enabled": true}, {"guid": "{zoned}", "enabled": false}]}`},
		{method: "GET", path: "/jobs?space_guid=space-1&per_page=1", status: 200, want: `{"pagination": {"total_results": 1, "total_pages": 1}, "resources": [{"guid": "{job}", "command": "bin/clean"}]}`},
		{method: "GET", path: "/jobs?space_guid=none", status: 200, want: `{"resources": []}`},
		{method: "GET", path: "/jobs?page=0", status: 400},
		{method: "GET", path: "/jobs?x=y", status: 400, want: detail(10005, "The query parameter is invalid: Unknown query parameter(s): 'x'")},
		{as: "space_auditor", method: "POST", path: "/jobs/{job}/execute", status: 403},
		{as: "space_developer", method: "POST", path: "/jobs/{job}/execute", status: 201, save: "run", want: `{"state": "RUNNING", "scheduled_time": null, "job_guid": "{job}"}`},
		{as: "space_developer", method: "POST", path: "/jobs/{job}/execute", status: 422},
		{method: "GET", path: "/jobs/{job}/history", status: 200, want: `{"resources": [{"guid": "{run}", "state": "RUNNING"}]}`},
		{method: "GET", path: "/v3/apps/app-1/tasks", status: 200, want: `{"resources": [{"command": "bin/clean", "memory_in_mb": 64}]}`},
		{method: "DELETE", path: "/jobs/{job}/schedules/none", status: 404, want: detail(10010, "Schedule not found")},
		{method: "DELETE", path: "/jobs/{job}/schedules/{zoned}", status: 204},
		{as: "org_user", method: "DELETE", path: "/jobs/{job}", status: 404, want: detail(10010, "Job not found")},
	})
	for _, path := range []string{"/jobs", "/jobs/{job}"} {
		if got := w.ask("space_auditor", "GET", w.fill(path), "", ""); got.status != 200 || contains(got.json, "command") {
			t.Errorf("%s: got %d %s; want no command", path, got.status, got.text)
		}
	}
	w.run(t, []step{{as: "space_developer", method: "DELETE", path: "/jobs/{job}", status: 204}, {method: "GET", path: "/jobs/{job}/history", status: 404}})
	w.hasEvents(t, "audit.app.job.create audit.app.job.schedule audit.app.job.schedule audit.app.job.schedule audit.app.task.create audit.app.job.unschedule audit.app.job.delete")
}

// jobWorld has a job with a schedule of each minute.
type jobWorld struct{ *world }

func newJobWorld(t *testing.T) jobWorld {
	w := jobWorld{newWorld(t)}
	w.run(t, []step{
		{method: "POST", path: "/jobs?app_guid=app-1", body: `{"name": "beat", "command": "x", "timeout_in_seconds": 600}`, status: 201, save: "job"},
		{method: "POST", path: "/jobs/{job}/schedules", body: `{"expression": "* * * * *"}`, status: 201, save: "schedule"},
	})
	return w
}

// dueSince lets the schedule be due since a time ago.
func (w jobWorld) dueSince(ago time.Duration) {
	w.write(func(tx *store.Tx) error {
		s, err := store.JobSchedules.Get(tx, w.saved["schedule"])
		if err != nil {
			return err
		}
		s.NextAt = tx.Now.Add(-ago).Truncate(time.Minute)
		return store.JobSchedules.Update(tx, s)
	})
}

// isLate lets the schedule be due once a day, and since two hours.
func (w jobWorld) isLate() {
	w.write(func(tx *store.Tx) error {
		s, err := store.JobSchedules.Get(tx, w.saved["schedule"])
		if err != nil {
			return err
		}
		due := tx.Now.Add(-2 * time.Hour)
		s.Expression, s.NextAt = fmt.Sprintf("%d %d * * *", due.Minute(), due.Hour()), due.Truncate(time.Minute)
		return store.JobSchedules.Update(tx, s)
	})
}

// tick runs the loop once and returns the history, the newest run first.
func (w jobWorld) tick(t *testing.T) []*cf.JobExecution {
	t.Helper()
	if err := w.api.Cron.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.history()
}

func (w jobWorld) history() (all []*cf.JobExecution) {
	w.write(func(tx *store.Tx) (err error) {
		all, _, err = store.JobExecutions.List(tx, store.Query{Desc: true})
		return err
	})
	return all
}

// ends ends the task of a run.
func (w jobWorld) ends(x *cf.JobExecution, state cf.TaskState, reason string) {
	w.write(func(tx *store.Tx) error {
		task, err := store.Tasks.Get(tx, x.TaskGUID)
		if err != nil {
			return err
		}
		task.State, task.FailureReason = state, reason
		return store.Tasks.Update(tx, task)
	})
}

func wantRun(t *testing.T, x *cf.JobExecution, state cf.ExecutionState, message string) {
	t.Helper()
	if x.State != state || !strings.Contains(x.Message, message) || message == "" && x.Message != "" {
		t.Errorf("got %s %q; want %s %q", x.State, x.Message, state, message)
	}
}

// TestAppJobRuns lets a job be due: it runs once at a time, and its runs end as their tasks do.
func TestAppJobRuns(t *testing.T) {
	w := newJobWorld(t)
	if got := w.tick(t); len(got) != 0 {
		t.Fatalf("not due: got %v", got)
	}
	w.dueSince(0)
	got := w.tick(t)
	wantRun(t, got[0], cf.ExecutionRunning, "")
	first := got[0]
	if again := w.tick(t); len(again) != 1 {
		t.Fatalf("it ran again: %v", again)
	}
	w.dueSince(0)
	got = w.tick(t)
	wantRun(t, got[0], cf.ExecutionSkipped, "still goes on, as the task beat-")
	w.ends(first, cf.TaskSucceeded, "")
	got = w.tick(t)
	wantRun(t, got[1], cf.ExecutionSucceeded, "")
	w.dueSince(0)
	failing := w.tick(t)[0]
	w.ends(failing, cf.TaskFailed, "exited with status 3")
	wantRun(t, w.tick(t)[0], cf.ExecutionFailed, "exited with status 3")
	w.dueSince(0)
	w.tick(t)
	w.write(func(tx *store.Tx) error { return store.Tasks.DeleteBy(tx, "app_guids", "app-1") })
	wantRun(t, w.tick(t)[0], cf.ExecutionFailed, "its task was deleted")
	w.run(t, []step{{method: "GET", path: "/jobs/{job}", status: 200, want: `{"state": "FAILED"}`}})
	w.hasEvents(t, "audit.app.job.create audit.app.job.schedule audit.app.task.create audit.app.job.skip audit.app.task.create audit.app.job.fail audit.app.task.create audit.app.job.fail")
}

// TestAppJobMissed lets a daemon be away while runs were due: the last is made up for, the
// others are said.
func TestAppJobMissed(t *testing.T) {
	w := newJobWorld(t)
	w.dueSince(30 * time.Minute)
	got := w.tick(t)
	if len(got) != 2 {
		t.Fatalf("got %d runs; want 2", len(got))
	}
	wantRun(t, got[0], cf.ExecutionRunning, "")
	wantRun(t, got[1], cf.ExecutionSkipped, "runs were missed, the first at")
	if at := got[0].ScheduledAt; time.Since(at) > 2*time.Minute || at.Second() != 0 {
		t.Errorf("the run is that of %s", at)
	}
	w.ends(got[0], cf.TaskSucceeded, "")
	w.dueSince(10 * 365 * 24 * time.Hour)
	got = w.tick(t)
	wantRun(t, got[0], cf.ExecutionRunning, "")
	wantRun(t, got[1], cf.ExecutionSkipped, "more than 999 runs were missed")
	w.isLate()
	w.ends(got[0], cf.TaskSucceeded, "")
	wantRun(t, w.tick(t)[0], cf.ExecutionRunning, "late: cupola was not running")
}

// TestAppJobTimeout cancels the task of a run that takes too long.
func TestAppJobTimeout(t *testing.T) {
	w := newJobWorld(t)
	w.dueSince(0)
	x := w.tick(t)[0]
	w.write(func(tx *store.Tx) error {
		x.StartedAt = tx.Now.Add(-10 * time.Minute)
		return store.JobExecutions.Update(tx, x)
	})
	wantRun(t, w.tick(t)[0], cf.ExecutionRunning, "canceled after its timeout of 10m0s")
	w.run(t, []step{{method: "GET", path: "/v3/apps/app-1/tasks", status: 200, want: `{"resources": [{"state": "CANCELING"}]}`}})
	w.ends(x, cf.TaskFailed, "task was cancelled")
	wantRun(t, w.tick(t)[0], cf.ExecutionFailed, "canceled after its timeout of 10m0s: task was cancelled")
}

// TestAppJobRefused lets a job be due that may not run.
func TestAppJobRefused(t *testing.T) {
	w := newJobWorld(t)
	due := func(state cf.ExecutionState, message string) {
		t.Helper()
		w.dueSince(0)
		wantRun(t, w.tick(t)[0], state, message)
	}
	w.run(t, []step{{method: "PATCH", path: "/v3/organizations/org-1", body: `{"suspended": true}`, status: 200}})
	due(cf.ExecutionSkipped, "the organization is suspended")
	w.run(t, []step{
		{method: "PATCH", path: "/v3/organizations/org-1", body: `{"suspended": false}`, status: 200},
		{method: "PATCH", path: "/v3/feature_flags/task_creation", body: `{"enabled": false}`, status: 200}})
	due(cf.ExecutionFailed, "Feature Disabled: task_creation")
	w.run(t, []step{
		{method: "PATCH", path: "/v3/feature_flags/task_creation", body: `{"enabled": true}`, status: 200},
		{method: "POST", path: "/v3/space_quotas", body: `{"name": "small", "apps": {"per_process_memory_in_mb": 100}, "relationships": {"organization": {"data": {"guid": "org-1"}}, "spaces": {"data": [{"guid": "space-1"}]}}}`, status: 201}})
	due(cf.ExecutionFailed, "memory")
	w.run(t, []step{{method: "PATCH", path: "/jobs/{job}/schedules/{schedule}", body: `{"enabled": false}`, status: 200}})
	w.dueSince(0)
	if got := w.tick(t); len(got) != 3 {
		t.Errorf("a paused schedule ran: %v", got[0])
	}
	w.dueSince(time.Hour)
	w.run(t, []step{{method: "PATCH", path: "/jobs/{job}/schedules/{schedule}", body: `{"enabled": true}`, status: 200}})
	if got := w.tick(t); len(got) != 3 {
		t.Errorf("a run of the pause was made up for: %v", got[0])
	}
}

// TestAppJobBounds adds more jobs, schedules and runs than are kept.
func TestAppJobBounds(t *testing.T) {
	w := newJobWorld(t)
	w.write(func(tx *store.Tx) error {
		for i := range 300 {
			if err := store.JobExecutions.Insert(tx, &cf.JobExecution{JobGUID: w.saved["job"], State: cf.ExecutionSkipped, Message: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	w.dueSince(0)
	if got := w.tick(t); len(got) != 200 || got[199].Message != "101" {
		t.Errorf("got %d runs, the oldest %q; want 200", len(got), got[len(got)-1].Message)
	}
	for i := range 19 {
		w.run(t, []step{{method: "POST", path: "/jobs/{job}/schedules", body: fmt.Sprintf(`{"expression": "%d * * * *"}`, i), status: 201}})
	}
	w.run(t, []step{{method: "POST", path: "/jobs/{job}/schedules", body: `{"expression": "@daily"}`, status: 422, want: detail(10008, "A job can have at most 20 schedules: delete one first.")}})
	for i := range 49 {
		w.run(t, []step{{method: "POST", path: "/jobs?app_guid=app-1", body: fmt.Sprintf(`{"name": "j%d", "command": "x"}`, i), status: 201}})
	}
	w.run(t, []step{{method: "POST", path: "/jobs?app_guid=app-1", body: `{"name": "more", "command": "x"}`, status: 422, want: detail(10008, "An app can have at most 50 jobs: delete one first.")}})
}
