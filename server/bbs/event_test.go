package bbs

import (
	"testing"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/desire"
	"cupola/store"
)

// TestEventsOfAnInstance follows one through all that becomes of it: diego's
// mapping of transitions to events.
func TestEventsOfAnInstance(t *testing.T) {
	w := newWorld(t)
	events := w.listen("POST", "/v1/events/lrp_instances.r1", &bbspb.EventsByCellIDRequest{})
	groups := w.listen("GET", "/v1/events.r1", &bbspb.EventsByCellIDRequest{})
	claim := func(a *lrp.Actual) { a.State, a.InstanceGUID, a.CellID = lrp.Claimed, "i-1", "cell-1" }
	run := func(a *lrp.Actual) {
		a.State, a.Address, a.Ports, a.Ready = lrp.Running, "10.0.0.1", []uint16{8080}, true
	}
	crash := func(state lrp.ActualState, count int) func(*lrp.Actual) {
		return func(a *lrp.Actual) {
			*a = lrp.Actual{Key: a.Key, Domain: a.Domain, State: state, CrashCount: count, CrashReason: "x: Exited with status 1"}
		}
	}

	w.desire(plain("p", 1))
	created := names(t, events, "desired_lrp_created", "actual_lrp_instance_created")
	if created[0].id != "0" || created[1].id != "1" {
		t.Errorf("got ids %s, %s; want 0, 1", created[0].id, created[1].id)
	}
	if d := into[bbspb.DesiredLRPEvent](t, created[0]).DesiredLrp; d.ProcessGuid != "p" || d.ModificationTag.GetEpoch() == "" {
		t.Errorf("got %v", d)
	}
	names(t, groups, "desired_lrp_created", "actual_lrp_created")

	w.swap("p", 0, false, func(a *lrp.Actual) { a.PlacementError = "insufficient resources: memory" })
	if e := into[bbspb.ActualLRPChangedEvent](t, names(t, events, "actual_lrp_instance_changed")[0]); e.After.PlacementError != "insufficient resources: memory" || e.Before.PlacementError != "" {
		t.Errorf("got %v", e)
	}
	w.swap("p", 0, false, claim)
	w.swap("p", 0, false, run)
	changed := names(t, events, "actual_lrp_instance_changed", "actual_lrp_instance_changed")
	e := into[bbspb.ActualLRPChangedEvent](t, changed[1])
	if e.Key.ProcessGuid != "p" || e.InstanceKey.InstanceGuid != "i-1" || e.Before.State != "CLAIMED" || e.After.State != "RUNNING" ||
		!e.After.GetRoutable() || e.After.NetInfo.Ports[0].ContainerPort != 8080 || e.After.ModificationTag.Index != 3 || e.Before.ModificationTag.Index != 2 {
		t.Errorf("got %v", e)
	}
	names(t, groups, "actual_lrp_changed", "actual_lrp_changed", "actual_lrp_changed")

	w.swap("p", 0, true, crash(lrp.Unclaimed, 1)) // crashes 1 and 2 restart at once
	crashed := names(t, events, "actual_lrp_crashed", "actual_lrp_instance_created", "actual_lrp_instance_removed")
	c := into[bbspb.ActualLRPCrashedEvent](t, crashed[0])
	if c.InstanceKey.InstanceGuid != "i-1" || c.CrashCount != 1 || c.CrashReason != "x: Exited with status 1" {
		t.Errorf("got %v", c)
	}
	if a := into[bbspb.ActualLRPEvent](t, crashed[1]).ActualLrp; a.State != "UNCLAIMED" || a.InstanceKey.InstanceGuid != "" {
		t.Errorf("created: got %v", a)
	}
	if a := into[bbspb.ActualLRPEvent](t, crashed[2]).ActualLrp; a.State != "RUNNING" || a.InstanceKey.InstanceGuid != "i-1" {
		t.Errorf("removed: got %v", a)
	}
	names(t, groups, "actual_lrp_crashed", "actual_lrp_changed")

	w.swap("p", 0, false, claim)
	w.swap("p", 0, true, crash(lrp.Crashed, 3)) // the third waits
	names(t, events, "actual_lrp_instance_changed", "actual_lrp_crashed", "actual_lrp_instance_changed")
	w.swap("p", 0, false, func(a *lrp.Actual) { a.State = lrp.Unclaimed })
	names(t, events, "actual_lrp_instance_created", "actual_lrp_instance_removed")

	n := int32(2)
	w.must("/v1/desired_lrp/update", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "p", Update: &bbspb.DesiredLRPUpdate{Instances: &n}})
	up := names(t, events, "desired_lrp_changed", "actual_lrp_instance_created")
	if e := into[bbspb.DesiredLRPChangedEvent](t, up[0]); e.Before.Instances != 1 || e.After.Instances != 2 || e.After.ModificationTag.Index != 1 {
		t.Errorf("got %v", e)
	}
	n = 0
	w.must("/v1/desired_lrp/update", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "p", Update: &bbspb.DesiredLRPUpdate{Instances: &n}})
	names(t, events, "desired_lrp_changed", "actual_lrp_instance_removed", "actual_lrp_instance_removed")
	w.must("/v1/desired_lrp/remove", &bbspb.ProcessGUIDRequest{ProcessGuid: "p"})
	names(t, events, "desired_lrp_removed")
}

// TestEventsOfACell wants a stream for a cell to have no instance of another.
func TestEventsOfACell(t *testing.T) {
	w := newWorld(t)
	events := w.listen("POST", "/v1/events/lrp_instances.r1", &bbspb.EventsByCellIDRequest{CellId: "cell-2"})
	w.desire(plain("p", 2))
	for i, cell := range []string{"cell-1", "cell-2"} {
		w.swap("p", i, false, func(a *lrp.Actual) { a.State, a.InstanceGUID, a.CellID = lrp.Claimed, "i-"+cell, cell })
	}
	got := names(t, events, "desired_lrp_created", "actual_lrp_instance_changed")
	if e := into[bbspb.ActualLRPChangedEvent](t, got[1]); e.InstanceKey.CellId != "cell-2" {
		t.Errorf("got %v", e)
	}
}

// desireApp makes the one app desire n instances; none for 0.
func (w *world) desireApp(n int) {
	w.t.Helper()
	w.mu.Lock()
	w.apps = nil
	if n > 0 {
		w.apps = []desire.App{{Desired: lrp.Desired{ProcessGUID: "app-1", Domain: lrp.DomainApps, Instances: n, RunInfo: lrp.RunInfo{Ports: []uint16{8080}}}}}
	}
	w.mu.Unlock()
	w.write(func(tx *store.Tx) error { return touchApps(tx) })
}

// TestEventsOfApps wants what apps desire to be told of as well.
func TestEventsOfApps(t *testing.T) {
	w := newWorld(t)
	w.desireApp(1)
	events := w.listen("POST", "/v1/events/lrp_instances.r1", &bbspb.EventsByCellIDRequest{})
	for n := range int32(100) { // each change is reported, also when it comes between a look and the wait for the next
		w.desireApp(int(n) + 2)
		e := names(t, events, "desired_lrp_changed")[0]
		if m := into[bbspb.DesiredLRPChangedEvent](t, e); m.Before.Instances != n+1 || m.After.Instances != n+2 || m.After.ModificationTag.Index <= m.Before.ModificationTag.Index {
			t.Errorf("got %v", m)
		}
	}
	w.desireApp(0)
	names(t, events, "desired_lrp_removed")
}

// TestEventsBeforeRun wants a stream to lack nothing that was changed before
// Run had begun.
func TestEventsBeforeRun(t *testing.T) {
	w := newStillWorld(t)
	w.desireApp(1)
	events := w.listen("POST", "/v1/events/lrp_instances.r1", &bbspb.EventsByCellIDRequest{})
	w.desire(plain("p", 1))
	names(t, events, "desired_lrp_created", "actual_lrp_instance_created")
	w.desireApp(2)
	w.run()
	names(t, events, "desired_lrp_changed")
}

// TestEventsAfterFault wants a look that failed to be made again, though nothing
// changes any more.
func TestEventsAfterFault(t *testing.T) {
	w := newWorld(t)
	w.desireApp(1)
	events := w.listen("POST", "/v1/events/lrp_instances.r1", &bbspb.EventsByCellIDRequest{})
	w.mu.Lock()
	w.faults = 1
	w.mu.Unlock()
	w.desireApp(2)
	names(t, events, "desired_lrp_changed")
}

// TestSlowReaderIsDropped wants a reader who falls too far behind to be told so
// by the end of the stream.
func TestSlowReaderIsDropped(t *testing.T) {
	h := newHub(nil, nil)
	s := h.subscribe(func(event) bool { return true })
	for range maxBehind + 1 {
		h.publish([]event{{name: "x"}})
	}
	n := 0
	for range s.events {
		n++
	}
	if n != maxBehind || !h.idle() {
		t.Errorf("got %d events, still listening %t", n, !h.idle())
	}
	h.unsubscribe(s)
}
