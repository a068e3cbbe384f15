package api

import (
	"context"
	"fmt"
	"testing"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

func TestAnInstanceComesUntilItsRouteCanLeadThere(t *testing.T) {
	checked := cf.HealthCheck{Type: "http"}
	for _, c := range []struct {
		name   string
		actual *lrp.Actual
		check  cf.HealthCheck
		want   bool
	}{
		{name: "no row yet", want: true},
		{name: "starts", actual: &lrp.Actual{State: lrp.Claimed}, want: true},
		{name: "has found no room", actual: &lrp.Actual{State: lrp.Unclaimed, PlacementError: "insufficient resources"}},
		{name: "runs, without its route", actual: &lrp.Actual{State: lrp.Running}, want: true},
		{name: "runs, and is not ready by its own check", actual: &lrp.Actual{State: lrp.Running}, check: checked},
		{name: "runs", actual: &lrp.Actual{State: lrp.Running, Ready: true}},
		{name: "crashed", actual: &lrp.Actual{State: lrp.Crashed}},
	} {
		if got := comes(&cf.Process{ReadinessCheck: c.check}, c.actual); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

// Who hears from the CLI's poll that an instance runs may ask for its page at
// once: the router knows of it by then.
func TestRunningIsSaidWhenTheRouterKnows(t *testing.T) {
	w := newWorld(t)
	w.write(seedStaging)
	asked, routed := make(chan struct{}), make(chan struct{})
	w.api.Routed = func(context.Context) {
		asked <- struct{}{}
		<-routed
	}
	got := w.poll(t.Context(), "/v3/processes/app-1/stats")
	w.write(func(tx *store.Tx) error {
		key, err := keyOfApp1(tx)
		if err != nil {
			return err
		}
		return store.ActualLRPs.Insert(tx, lrp.Actual{Key: key, Domain: lrp.DomainApps, InstanceGUID: "i", CellID: "cell", State: lrp.Running, Since: tx.Now, Ready: true, Address: "10.255.0.2"})
	})
	within(t, "the question to the router", asked)
	select {
	case early := <-got:
		t.Errorf("got %+v before the router knew", early)
	default:
	}
	close(routed)
	if answer := within(t, "the answer", got); answer.err != nil {
		t.Error(answer.err)
	}
}

// The log of an app is read once for all of its crashed instances, and each gets its own details.
func TestCrashesAreReadOnceARequest(t *testing.T) {
	w := newWorld(t)
	w.write(seedStaging)
	reads := 0
	w.api.WhyCrashed = func(p *cf.Process) func(*lrp.Actual) string {
		reads++
		return func(a *lrp.Actual) string { return fmt.Sprintf("%s %d: %s", p.GUID, a.Index, a.CrashReason) }
	}
	w.write(func(tx *store.Tx) error {
		p, err := store.Processes.Get(tx, "app-1")
		if err != nil {
			return err
		}
		app, err := store.Apps.Get(tx, "app-1")
		if err != nil {
			return err
		}
		p.Instances = 3
		if err := store.Processes.Update(tx, p); err != nil {
			return err
		}
		for i := range 3 {
			key := lrp.Key{ProcessGUID: desire.ProcessGUID(p, app), Index: i}
			if err := store.ActualLRPs.Insert(tx, lrp.Actual{Key: key, Domain: lrp.DomainApps, State: lrp.Crashed, CrashReason: "ended", Since: tx.Now}); err != nil {
				return err
			}
		}
		return nil
	})
	w.run(t, []step{{method: "GET", path: "/v3/processes/app-1/stats", status: 200, want: `{"resources": [
		{"state": "CRASHED", "details": "app-1 0: ended"}, {"state": "CRASHED", "details": "app-1 1: ended"}, {"state": "CRASHED", "details": "app-1 2: ended"}]}`}})
	if reads != 1 {
		t.Errorf("the log was read %d times; want once", reads)
	}
}

// TestWaitingInstance: why a placed instance does not start yet, where its cell knows, is in its details.
func TestWaitingInstance(t *testing.T) {
	w := newWorld(t)
	w.write(seedStaging)
	w.usage = lrp.Stats{Waits: "no room"}
	w.write(func(tx *store.Tx) error {
		key, err := keyOfApp1(tx)
		if err != nil {
			return err
		}
		return store.ActualLRPs.Insert(tx, lrp.Actual{Key: key, Domain: lrp.DomainApps, State: lrp.Claimed, InstanceGUID: "i-1", CellID: "edge", CrashReason: "ended", Since: tx.Now})
	})
	w.run(t, []step{{method: "GET", path: "/v3/processes/app-1/stats", status: 200, want: `{"resources": [{"state": "STARTING", "details": "Waiting: no room"}]}`}})
}
