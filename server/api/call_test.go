package api

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"cupola/server/control/cronjobs"
	"cupola/store"
	"cupola/store/cf"
)

// TestCalls makes, schedules and deletes calls of an app by the API of Cloud Foundry's
// scheduler.
func TestCalls(t *testing.T) {
	w := newWorld(t)
	invalid := func(body, want string) step {
		return step{as: "space_developer", method: "POST", path: "/calls?app_guid=app-1", body: body, status: 422, want: detail(10008, want)}
	}
	const noURL = "Url must be one of http or https, without a user: give auth_header"
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/calls?app_guid=app-1", body: `{"guid": "", "name": "wake", "url": "https://app.test/hook?token=x", "auth_header": "default", "app_guid": "", "space_guid": ""}`, status: 201, save: "call",
			want: `{"name": "wake", "url": "https://app.test/hook?token=x", "timeout_in_seconds": 60, "state": "PENDING", "app_guid": "app-1", "space_guid": "space-1"}`},
		invalid(`{"name": "wake", "url": "http://x.test"}`, "A call with the name 'wake' exists in this space: choose another name."),
		invalid(`{"name": "x", "url": ""}`, noURL), invalid(`{"name": "x", "url": "ftp://x.test"}`, noURL),
		invalid(`{"name": "x", "url": "http://joe:secret@x.test"}`, noURL), invalid(`{"name": "x", "url": "http://:80/"}`, noURL),
		invalid(`{"name": "x", "url": "http://x.test", "auth_header": "a\r\nb", "timeout_in_seconds": 601}`,
			"Auth header must have at most 4096 bytes, none of them control characters, Timeout in seconds must be from 1 to 600"),
		{as: "space_developer", method: "POST", path: "/jobs?app_guid=app-1", body: `{"name": "wake", "command": "x"}`, status: 201, save: "job"},
		{method: "POST", path: "/calls/{call}/schedules", body: `{"enabled": true, "expression": "@daily", "expression_type": "cron_expression"}`, status: 201, save: "schedule", want: `{"call_guid": "{call}", "expression": "@daily"}`},
		{method: "GET", path: "/calls?space_guid=space-1", status: 200, want: `{"pagination": {"total_results": 1}, "resources": [{"guid": "{call}"}]}`},
		{method: "GET", path: "/jobs", status: 200, want: `{"pagination": {"total_results": 1}, "resources": [{"guid": "{job}"}]}`},
		{method: "GET", path: "/jobs/{call}", status: 404, want: detail(10010, "Job not found")},
		{method: "GET", path: "/calls/{job}", status: 404, want: detail(10010, "Call not found")},
		{method: "DELETE", path: "/jobs/{call}/schedules/{schedule}", status: 404},
		{as: "space_developer", method: "POST", path: "/calls/{call}/execute", status: 201, save: "run", want: `{"state": "RUNNING", "scheduled_time": null, "call_guid": "{call}"}`},
		{as: "space_developer", method: "POST", path: "/calls/{call}/execute", status: 422},
		{method: "GET", path: "/calls/{call}/history", status: 200, want: `{"resources": [{"guid": "{run}", "state": "RUNNING"}]}`},
		{method: "DELETE", path: "/calls/{call}/schedules/{schedule}", status: 204},
	})
	for _, path := range []string{"/calls", "/calls/{call}"} {
		if got := w.ask("space_auditor", "GET", w.fill(path), "", ""); got.status != 200 || contains(got.json, "url") || contains(got.json, "auth_header") {
			t.Errorf("%s: got %d %s; want no URL", path, got.status, got.text)
		}
	}
	w.run(t, []step{{as: "space_developer", method: "DELETE", path: "/calls/{call}", status: 204}, {method: "GET", path: "/calls/{call}/history", status: 404}})
}

// callWorld has a call with a schedule of each minute.
type callWorld struct{ jobWorld }

func newCallWorld(t *testing.T, call func(context.Context) (string, error)) callWorld {
	w := callWorld{jobWorld{newWorld(t)}}
	w.run(t, []step{
		{method: "POST", path: "/calls?app_guid=app-1", body: `{"name": "beat", "url": "http://x.test", "auth_header": "bearer y", "timeout_in_seconds": 1}`, status: 201, save: "call"},
		{method: "POST", path: "/calls/{call}/schedules", body: `{"expression": "* * * * *"}`, status: 201, save: "schedule"},
	})
	w.api.Cron.Call = func(ctx context.Context, spaceGUID string, c *cf.AppJob) (string, error) {
		if spaceGUID != "space-1" || c.URL != "http://x.test" || c.AuthHeader != "bearer y" {
			t.Errorf("got %s, %+v", spaceGUID, c)
		}
		return call(ctx)
	}
	return w
}

// ended runs the loop until the run that is due has ended. None begins with the next minute.
func (w callWorld) ended(t *testing.T) []*cf.JobExecution {
	t.Helper()
	w.tick(t)
	w.dueSince(-time.Hour)
	for {
		if all := w.tick(t); len(all) > 0 && all[0].State != cf.ExecutionRunning {
			return all
		}
		time.Sleep(time.Millisecond)
	}
}

// TestCallRuns lets a call be due: its runs end as its request is answered, which is made once.
func TestCallRuns(t *testing.T) {
	var requests atomic.Int64
	answers := []func(context.Context) (string, error){
		func(context.Context) (string, error) { return "200 OK", nil },
		func(context.Context) (string, error) { return "", errors.New("answered 404 Not Found") },
		func(context.Context) (string, error) { panic("a bug") },
		func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) },
	}
	w := newCallWorld(t, func(ctx context.Context) (string, error) { return answers[requests.Add(1)-1](ctx) })
	for n, want := range []cf.JobExecution{
		{State: cf.ExecutionSucceeded, Message: "200 OK"}, {State: cf.ExecutionFailed, Message: "answered 404 Not Found"},
		{State: cf.ExecutionFailed, Message: "the request broke off"}, {State: cf.ExecutionFailed, Message: "canceled after its timeout of 1s"},
	} {
		w.dueSince(0)
		all := w.ended(t)
		wantRun(t, all[0], want.State, want.Message)
		if len(all) != n+1 || int(requests.Load()) != n+1 {
			t.Errorf("got %d runs and %d requests; want %d", len(all), requests.Load(), n+1)
		}
	}
	w.run(t, []step{{method: "GET", path: "/calls/{call}", status: 200, want: `{"state": "FAILED"}`}})
}

// TestCallIsNotRepeated ends the daemon while a request is under way, and sets the clock back.
func TestCallIsNotRepeated(t *testing.T) {
	var requests atomic.Int64
	w := newCallWorld(t, func(ctx context.Context) (string, error) {
		requests.Add(1)
		<-ctx.Done()
		return "", ctx.Err()
	})
	w.dueSince(0)
	ctx, end := context.WithCancel(t.Context())
	for range 2 { // the run, then its request
		if err := w.api.Cron.Once(ctx); err != nil {
			t.Fatal(err)
		}
	}
	end()
	w.write(func(tx *store.Tx) error {
		x, err := store.JobExecutions.First(tx, store.Query{})
		if err != nil {
			return err
		}
		x.StartedAt = x.StartedAt.Add(time.Hour)
		return store.JobExecutions.Update(tx, x)
	})
	w.restart()
	all := w.tick(t)
	wantRun(t, all[0], cf.ExecutionFailed, "cupola ended while the request was made. It is not made again")
	if len(all) != 1 || requests.Load() > 1 {
		t.Errorf("got %d runs and %d requests; want 1", len(all), requests.Load())
	}
}

// restart replaces the loop, as the next daemon does.
func (w callWorld) restart() {
	w.api.Cron = cronjobs.NewLoop(cronjobs.Config{Store: w.api.Store, Platform: &w.api.Platform, Call: w.api.Cron.Call, Log: slog.New(slog.DiscardHandler)})
}

// TestCallOutlivesDaemon ends the daemon after a call was asked for and before its request is made.
func TestCallOutlivesDaemon(t *testing.T) {
	w := newCallWorld(t, func(context.Context) (string, error) { return "200 OK", nil })
	w.run(t, []step{{method: "POST", path: "/calls/{call}/execute", status: 201, want: `{"state": "RUNNING", "execution_start_time": null}`}})
	w.restart()
	all := w.ended(t)
	wantRun(t, all[0], cf.ExecutionSucceeded, "200 OK")
	if len(all) != 1 || all[0].StartedAt.IsZero() {
		t.Errorf("got %+v", all)
	}
}

// TestLateCall lets a call be due while no daemon runs: its history says so.
func TestLateCall(t *testing.T) {
	w := newCallWorld(t, func(context.Context) (string, error) { return "200 OK", nil })
	w.isLate()
	wantRun(t, w.ended(t)[0], cf.ExecutionSucceeded, "late: cupola was not running: 200 OK")
}

// TestCallOfDeletedApp deletes an app while a call of it is under way.
func TestCallOfDeletedApp(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	w := newCallWorld(t, func(context.Context) (string, error) {
		close(asked)
		<-answer
		return "200 OK", nil
	})
	w.dueSince(0)
	w.tick(t)
	w.tick(t)
	<-asked
	w.write(func(tx *store.Tx) error { return store.AppJobs.Delete(tx, w.saved["call"]) })
	close(answer)
	if got := w.tick(t); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
