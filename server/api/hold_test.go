package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// polled is what a client that waits for news got.
type polled struct {
	state string
	err   error
}

// poll asks for the state of something as our own CLI does, which is let wait.
// It returns when the request was sent.
func (w *world) poll(ctx context.Context, path string) <-chan polled {
	return w.pollAs(ctx, "admin", path)
}

func (w *world) pollAs(ctx context.Context, user, path string) <-chan polled {
	w.t.Helper()
	sent := make(chan struct{})
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }})
	req, err := http.NewRequestWithContext(ctx, "GET", w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("User-Agent", "cupola/1")
	req.Header.Set("Authorization", "bearer "+w.token(user))
	got := make(chan polled, 1)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			got <- polled{err: err}
			return
		}
		defer res.Body.Close()
		var answer struct{ State string }
		err = json.NewDecoder(res.Body).Decode(&answer)
		got <- polled{answer.State, err}
	}()
	<-sent
	return got
}

// soon is much less than any answer is held.
const soon = 5 * time.Second

// within fails when nothing comes soon.
func within[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(soon):
		t.Errorf("%s took longer than %s", what, soon)
	}
	return v
}

func seedStaging(tx *store.Tx) error {
	for _, row := range []func() error{
		func() error {
			return store.Builds.Insert(tx, &cf.Build{Resource: guid("build-9"), AppGUID: "app-1", PackageGUID: "package-1", State: cf.BuildStaging})
		},
		func() error {
			return store.Tasks.Insert(tx, &cf.Task{Resource: guid("task-9"), AppGUID: "app-1", DropletGUID: "droplet-1", SequenceID: 9, State: cf.TaskRunning})
		},
		func() error {
			a, err := store.Apps.Get(tx, "app-1")
			if err != nil {
				return err
			}
			a.State = cf.Started
			return store.Apps.Update(tx, a)
		},
	} {
		if err := row(); err != nil {
			return err
		}
	}
	return nil
}

var waits = []struct{ path, state string }{{"/v3/builds/build-9", "STAGING"}, {"/v3/tasks/task-9", "RUNNING"}, {"/v3/processes/app-1/stats", ""}}

func TestPollsAreAnsweredWithNews(t *testing.T) {
	w := newWorld(t)
	w.write(seedStaging)
	build, task := w.poll(t.Context(), "/v3/builds/build-9"), w.poll(t.Context(), "/v3/tasks/task-9")
	w.write(func(tx *store.Tx) error {
		b, err := store.Builds.Get(tx, "build-9")
		if err != nil {
			return err
		}
		b.State, b.Error = cf.BuildFailed, "x"
		if err := store.Builds.Update(tx, b); err != nil {
			return err
		}
		k, err := store.Tasks.Get(tx, "task-9")
		if err != nil {
			return err
		}
		k.State = cf.TaskSucceeded
		return store.Tasks.Update(tx, k)
	})
	if got := within(t, "the build", build); got != (polled{state: "FAILED"}) {
		t.Errorf("the build: got %+v", got)
	}
	if got := within(t, "the task", task); got != (polled{state: "SUCCEEDED"}) {
		t.Errorf("the task: got %+v", got)
	}
}

// TestPollsSleepThroughOtherRows changes other rows of the tables that polls read.
func TestPollsSleepThroughOtherRows(t *testing.T) {
	w := newWorld(t)
	w.write(seedStaging)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for _, c := range waits {
		w.pollAs(ctx, "space_developer", c.path)
	}
	for w.api.held.Used() < len(waits) {
		time.Sleep(time.Millisecond)
	}
	before, own := w.store.Statements(), int64(0)
	w.write(func(tx *store.Tx) error {
		err := errors.Join(store.Builds.Insert(tx, &cf.Build{AppGUID: "app-1", PackageGUID: "package-1", State: cf.BuildStaging}),
			store.Tasks.Insert(tx, &cf.Task{AppGUID: "app-1", DropletGUID: "droplet-1", SequenceID: 10, State: cf.TaskRunning}),
			store.Apps.Insert(tx, &cf.App{Resource: guid("other"), Name: "other", SpaceGUID: "space-1", State: cf.Started}),
			store.Processes.Insert(tx, &cf.Process{AppGUID: "other", Type: "web", Instances: 1}),
			store.Spaces.Insert(tx, &cf.Space{Name: "other", OrgGUID: "org-1"}),
			store.ActualLRPs.Insert(tx, lrp.Actual{Key: lrp.Key{ProcessGUID: "app-1x-1"}, Domain: lrp.DomainApps, State: lrp.Running}))
		own = tx.Statements()
		return err
	})
	time.Sleep(100 * time.Millisecond)
	if got := w.store.Statements() - before - own; got != 0 {
		t.Errorf("polls ran %d statements for rows that they did not read", got)
	}
}

func TestPollsEndWithTheDaemon(t *testing.T) {
	w := newWorld(t)
	w.write(seedStaging)
	for _, c := range waits {
		world := w.copy(t)
		got := world.poll(t.Context(), c.path)
		world.stop()
		if got := within(t, c.path, got); got != (polled{state: c.state}) {
			t.Errorf("%s: got %+v; want it as it is", c.path, got)
		}
	}
}

func TestPollsEndWithTheirClient(t *testing.T) {
	w := newWorld(t)
	w.write(seedStaging)
	for _, c := range waits {
		world := w.copy(t)
		ctx, leave := context.WithCancel(t.Context())
		got := world.poll(ctx, c.path)
		leave()
		if got := within(t, c.path, got); got.err == nil {
			t.Errorf("%s: got %+v; want the client's own error", c.path, got)
		}
		closed := make(chan bool)
		go func() { world.server.Close(); close(closed) }() // waits for requests under way
		within(t, c.path+" of a client that left", closed)
	}
}
