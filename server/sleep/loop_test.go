package sleep

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/server/router"
	"cupola/store"
	"cupola/store/cf"
)

// bed is a Loop with a real store and router and fake containers, in a synctest bubble. It
// has an app that sleeps after 10 minutes, and stops after an hour more.
type bed struct {
	t      *testing.T
	store  *store.Store
	router *router.Router
	loop   *Loop
	end    func()

	mu     sync.Mutex
	frozen map[string]bool // instances that there are
	fails  error           // of Freeze
	lines  []string
}

func inBed(t *testing.T, defaults cf.SleepTimes, f func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		b := &bed{t: t, store: s, frozen: map[string]bool{"i0": false}}
		b.write(b.seed)
		b.begin(defaults)
		defer func() { b.end() }()
		f(t, b)
	})
}

func named(guid string) cf.Resource { return cf.Resource{GUID: guid} }

func (b *bed) seed(tx *store.Tx) error {
	app := &cf.App{Resource: named("app"), Name: "app", SpaceGUID: "space", State: cf.Started, Metadata: cf.Metadata{Labels: map[string]string{cf.LabelSleepAfter: "10m"}}}
	web := &cf.Process{Resource: named("web"), AppGUID: "app", Type: "web", Instances: 1, HealthCheck: cf.HealthCheck{Timeout: 30}}
	err := errors.Join(store.Orgs.Insert(tx, &cf.Org{Resource: named("org"), Name: "org"}), store.Spaces.Insert(tx, &cf.Space{Resource: named("space"), Name: "space", OrgGUID: "org"}),
		store.Domains.Insert(tx, &cf.Domain{Resource: named("domain"), Name: "example.com"}), store.Domains.Insert(tx, &cf.Domain{Resource: named("internal"), Name: "apps.internal", Internal: true}),
		store.Apps.Insert(tx, app), store.Processes.Insert(tx, web), store.Routes.Insert(tx, routeTo("domain", "web")))
	return errors.Join(err, store.ActualLRPs.Insert(tx, instance(desire.ProcessGUID(web, app), 0, "i0")))
}

func routeTo(domain, processType string) *cf.Route {
	return &cf.Route{Resource: named(domain + processType), Host: processType, DomainGUID: domain, SpaceGUID: "space", Destinations: []cf.Destination{{AppGUID: "app", ProcessType: processType}}}
}

func instance(process string, index int, guid string) lrp.Actual {
	return lrp.Actual{Key: lrp.Key{ProcessGUID: process, Index: index}, Domain: lrp.DomainApps, State: lrp.Running, Ready: true, InstanceGUID: guid, Address: "127.0.0.1"}
}

// begin starts a daemon's router and loop.
func (b *bed) begin(defaults cf.SleepTimes) {
	b.router = router.New(router.Config{Log: slog.New(slog.DiscardHandler)})
	b.loop = New(Config{Store: b.store, Router: b.router, Defaults: defaults, Freeze: b.freeze, Thaw: b.thaw, Containers: b.containers,
		Routed: func(context.Context) error { return nil },
		Logs: func(l lrp.LogLine) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.lines = append(b.lines, string(l.Text))
		}})
	b.router.SetWake(b.loop.Wake)
	if err := b.loop.Set(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.loop.Run(ctx); err != nil {
			b.t.Error(err)
		}
	})
	b.end = func() {
		cancel()
		running.Wait()
	}
	synctest.Wait()
}

func (b *bed) freeze(_ context.Context, guid string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails == nil {
		b.frozen[guid] = true
	}
	return b.fails
}

func (b *bed) thaw(guid string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frozen[guid] = false
	return nil
}

func (b *bed) containers() (all []lrp.ContainerStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for guid, frozen := range b.frozen {
		all = append(all, lrp.ContainerStatus{GUID: guid, Frozen: frozen})
	}
	return all
}

func (b *bed) write(f func(*store.Tx) error) {
	b.t.Helper()
	if err := b.store.Write(b.t.Context(), f); err != nil {
		b.t.Fatal(err)
	}
}

// with changes what the loop sees of the machine.
func (b *bed) with(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// pass lets time pass.
func (b *bed) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// state is how the rows say that the app sleeps; "" is not.
func (b *bed) state() (s cf.SleepState) {
	b.t.Helper()
	err := b.store.Read(b.t.Context(), func(tx *store.Tx) error {
		rows, err := store.Sleeps.All(tx)
		for _, r := range rows {
			s = r.State
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// want checks what the rows, the router and the instance say.
func (b *bed) want(state cf.SleepState, frozen bool) {
	b.t.Helper()
	b.mu.Lock()
	is := b.frozen["i0"]
	b.mu.Unlock()
	if got := b.state(); got != state || b.router.Asleep("app") != (state != "") || is != frozen {
		b.t.Fatalf("got rows %q, asleep %t, frozen %t; want %q, frozen %t; lines %q", got, b.router.Asleep("app"), is, state, frozen, b.lines)
	}
}

func (b *bed) request() error {
	release, err := b.router.Hold(b.t.Context(), "app")
	if err == nil {
		release()
	}
	b.pass(dropAfter)
	return err
}

// serve lets the router lead to an instance, or to none.
func (b *bed) serve(on bool) {
	r := router.Route{Host: "web.example.com", AppGUID: "app"}
	if on {
		r.Endpoints = []router.Endpoint{{Address: "127.0.0.1:1", AppGUID: "app", InstanceGUID: "i0"}}
	}
	b.router.Set(router.Table{Routes: []router.Route{r}})
}

var hour = cf.SleepTimes{StopAfter: time.Hour}

func TestFallsAsleepAndWakes(t *testing.T) {
	inBed(t, hour, func(_ *testing.T, b *bed) {
		b.pass(9 * time.Minute)
		b.want("", false)
		if err := b.request(); err != nil {
			t.Fatal(err)
		}
		b.pass(9 * time.Minute)
		b.want("", false)
		b.pass(2 * time.Minute)
		b.want(cf.SleepFrozen, true)
		b.pass(30 * time.Minute)
		b.want(cf.SleepFrozen, true)
		if err := b.request(); err != nil {
			t.Fatal(err)
		}
		b.want("", false)
		b.pass(11 * time.Minute)
		b.want(cf.SleepFrozen, true)
		b.pass(61 * time.Minute)
		b.want(cf.SleepStopped, true)
		b.mu.Lock()
		defer b.mu.Unlock()
		want := "App sleeps after 10m0s without a request|App wakes after 31m0.2s: a request came|App sleeps after 10m0s without a request|App sleeps without instances after 1h0m0s asleep"
		if got := strings.Join(b.lines, "|"); got != want {
			t.Errorf("got lines %q; want %q", got, want)
		}
	})
}

// TestKeepsAwake holds what keeps an app from sleeping, and wakes one that sleeps.
func TestKeepsAwake(t *testing.T) {
	changeApp := func(change func(*cf.App)) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			a, err := store.Apps.Get(tx, "app")
			if err != nil {
				return err
			}
			change(a)
			return store.Apps.Update(tx, a)
		}
	}
	for name, change := range map[string]func(*store.Tx) error{
		"a task": func(tx *store.Tx) error {
			return store.Tasks.Insert(tx, &cf.Task{Resource: named("task"), AppGUID: "app", Name: "t", State: cf.TaskRunning})
		},
		"a deployment": func(tx *store.Tx) error {
			return store.Deployments.Insert(tx, &cf.Deployment{Resource: named("deployment"), AppGUID: "app", StatusValue: cf.Active, Strategy: "rolling", State: "DEPLOYING", StatusReason: "DEPLOYING"})
		},
		"a worker": func(tx *store.Tx) error {
			return store.Processes.Insert(tx, &cf.Process{Resource: named("worker"), AppGUID: "app", Type: "worker", Instances: 1})
		},
		"an internal route": func(tx *store.Tx) error { return store.Routes.Insert(tx, routeTo("internal", "web")) },
		"no route":          func(tx *store.Tx) error { return store.Routes.Delete(tx, "domainweb") },
		"another instance to come": func(tx *store.Tx) error {
			p, err := store.Processes.Get(tx, "web")
			if err != nil {
				return err
			}
			p.Instances = 2
			return store.Processes.Update(tx, p)
		},
		"a restart":         changeApp(func(a *cf.App) { a.Rev++ }),
		"an app that stops": changeApp(func(a *cf.App) { a.State = cf.Stopped }),
		"the label off":     changeApp(func(a *cf.App) { a.Labels[cf.LabelSleepAfter] = "off" }),
		"no label":          changeApp(func(a *cf.App) { a.Labels = nil }),
		"an instance that is not ready": func(tx *store.Tx) error {
			a, err := store.ActualLRPs.OfInstance(tx, "i0")
			if err != nil {
				return err
			}
			next := *a
			next.Ready = false
			_, err = store.ActualLRPs.Swap(tx, *a, next)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, hour, func(_ *testing.T, b *bed) {
				b.write(change)
				b.pass(12 * time.Minute)
				b.want("", false)
			})
			inBed(t, hour, func(_ *testing.T, b *bed) {
				b.pass(11 * time.Minute)
				b.want(cf.SleepFrozen, true)
				b.write(change)
				b.pass(10 * time.Second)
				b.want("", false)
			})
		})
	}
}

func TestHoldKeepsAwake(t *testing.T) {
	inBed(t, hour, func(t *testing.T, b *bed) {
		release, err := b.router.Hold(t.Context(), "app")
		if err != nil {
			t.Fatal(err)
		}
		b.pass(2 * time.Hour)
		b.want("", false)
		release()
		b.pass(11 * time.Minute)
		b.want(cf.SleepFrozen, true)
	})
}

// TestThawedByOthers wakes an app of which an instance is awake, whoever thawed it, and thaws
// one that no row says to sleep.
func TestThawedByOthers(t *testing.T) {
	inBed(t, hour, func(t *testing.T, b *bed) {
		b.pass(11 * time.Minute)
		b.want(cf.SleepFrozen, true)
		if err := b.thaw("i0"); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Minute)
		b.want("", false)
		b.with(func() { b.frozen["i0"], b.frozen["other"] = true, true })
		b.pass(time.Minute)
		b.want("", false)
		b.with(func() {
			if b.frozen["other"] {
				t.Error("a stray instance stays frozen")
			}
		})
	})
}

// TestNextDaemon holds that an app sleeps on, and is woken, whatever its daemon had done.
func TestNextDaemon(t *testing.T) {
	inBed(t, hour, func(t *testing.T, b *bed) {
		b.pass(11 * time.Minute)
		b.end()
		b.begin(hour)
		b.want(cf.SleepFrozen, true)
		b.pass(20 * time.Minute)
		b.want(cf.SleepFrozen, true)
		if err := b.request(); err != nil {
			t.Fatal(err)
		}
		b.want("", false)

		b.pass(11 * time.Minute)
		b.end()
		b.with(func() { b.frozen["i0"] = false }) // killed before it froze, or after it thawed
		b.begin(hour)
		b.pass(time.Minute)
		b.want("", false)
	})
}

func TestStoppedAppStarts(t *testing.T) {
	inBed(t, cf.SleepTimes{StopAfter: time.Second}, func(t *testing.T, b *bed) {
		b.serve(true)
		b.pass(11 * time.Minute)
		b.want(cf.SleepStopped, true)
		b.serve(false)
		began, answered := time.Now(), time.Duration(0)
		var request sync.WaitGroup
		request.Go(func() {
			if err := b.request(); err != nil {
				t.Error(err)
			}
			answered = time.Since(began)
		})
		b.pass(20 * time.Second)
		if b.state() != "" || !b.router.Asleep("app") {
			t.Fatal("the app is not desired again, or its requests do not wait")
		}
		b.serve(true)
		request.Wait()
		if answered < 20*time.Second || answered > 21*time.Second {
			t.Errorf("got the request answered after %v; want it when the instance was there", answered)
		}
	})
}

func TestStoppedAppThatDoesNotStart(t *testing.T) {
	inBed(t, cf.SleepTimes{StopAfter: time.Second}, func(t *testing.T, b *bed) {
		b.pass(11 * time.Minute)
		began := time.Now()
		err := b.request()
		if err == nil || err.Error() != "no instance is ready after 30s" || time.Since(began) != 30*time.Second+dropAfter {
			t.Errorf("got %v after %v; want the app's own time for a start", err, time.Since(began))
		}
		if b.router.Asleep("app") {
			t.Error("requests go on waiting")
		}
	})
}

func TestWithoutFreezer(t *testing.T) {
	inBed(t, cf.SleepTimes{}, func(_ *testing.T, b *bed) {
		b.with(func() { b.fails = ErrNoFreezer })
		b.pass(11 * time.Minute)
		b.want(cf.SleepStopped, false)
	})
}

func TestFreezeThatFails(t *testing.T) {
	inBed(t, cf.SleepTimes{}, func(_ *testing.T, b *bed) {
		b.with(func() { b.fails = errors.New("a session is open") })
		b.pass(11 * time.Minute)
		b.want("", false)
		b.with(func() { b.fails = nil })
		b.pass(11 * time.Minute)
		b.want(cf.SleepFrozen, true)
		b.pass(3 * time.Hour) // no time to stop
		b.want(cf.SleepFrozen, true)
	})
}

// TestDefaultTimes holds for apps that say nothing, and for one that says it does not sleep.
func TestDefaultTimes(t *testing.T) {
	times := cf.SleepTimes{After: time.Minute}
	for labels, want := range map[string]cf.SleepState{"": cf.SleepFrozen, "off": "", "1h": "", "bad": cf.SleepFrozen} {
		inBed(t, times, func(t *testing.T, b *bed) {
			b.write(func(tx *store.Tx) error {
				a, err := store.Apps.Get(tx, "app")
				if err != nil {
					return err
				}
				if a.Labels = nil; labels != "" {
					a.Labels = map[string]string{cf.LabelSleepAfter: labels}
				}
				return store.Apps.Update(tx, a)
			})
			b.pass(2 * time.Minute)
			if got := b.state(); got != want {
				t.Errorf("label %q: got %q; want %q", labels, got, want)
			}
		})
	}
}
