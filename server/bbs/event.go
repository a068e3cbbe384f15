package bbs

import (
	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bbs/model"
	"cupola/store"
)

// metricTagged is the DesiredLRP whose metric tags an instance has; nil for
// none.
type metricTagged = *bbspb.DesiredLRP

// translate gives Diego's events for one change.
func (h *hub) translate(c store.Change) []event {
	switch v := either(c).(type) {
	case *lrp.Actual:
		return h.instance(c, h.tagged(v.ProcessGUID))
	case *store.BBSDesired:
		return desiredEvents(decoded(c.Before), decoded(c.After))
	case *store.BBSTask:
		return taskEvents(c)
	case *lrp.Task:
		if ofApps(v.Domain) {
			return taskEvents(c)
		}
	}
	return nil
}

func either(c store.Change) any {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

func (h *hub) tagged(processGUID string) metricTagged {
	if d := h.rows.Message(processGUID); d != nil {
		return d
	}
	return h.message(processGUID)
}

// instance returns the events of an ActualLRP. Where one is UNCLAIMED again, Diego
// reports a new one, and that the old one was removed.
func (h *hub) instance(c store.Change, d metricTagged) []event {
	var before, after *bbspb.ActualLRP
	zones := h.zones()
	if a, ok := c.Before.(*lrp.Actual); ok {
		before = model.Actual(a, d, zones[a.CellID])
	}
	if a, ok := c.After.(*lrp.Actual); ok {
		after = model.Actual(a, d, zones[a.CellID])
	}
	switch {
	case before == nil:
		return []event{instanceEvent("created", after), groupEvent("created", after)}
	case after == nil:
		return []event{instanceEvent("removed", before), groupEvent("removed", before)}
	case sameToClients(before, after):
		return nil
	}
	var events []event
	if c.Crash {
		events = append(events, crashed(before, after))
	}
	if before.State != string(lrp.Unclaimed) && after.State == string(lrp.Unclaimed) {
		events = append(events, instanceEvent("created", after), instanceEvent("removed", before))
	} else {
		events = append(events, instanceChanged(before, after))
	}
	return append(events, newEvent(aboutGroup, "actual_lrp_changed", "", &bbspb.ActualLRPGroupChangedEvent{
		Before: &bbspb.ActualLRPGroup{Instance: before}, After: &bbspb.ActualLRPGroup{Instance: after}}))
}

// sameToClients reports whether a change is invisible to clients.
func sameToClients(before, after *bbspb.ActualLRP) bool {
	b := proto.CloneOf(before)
	b.ModificationTag = after.ModificationTag
	return proto.Equal(b, after)
}

func instanceEvent(what string, a *bbspb.ActualLRP) event {
	return newEvent(aboutInstance, "actual_lrp_instance_"+what, a.InstanceKey.CellId, &bbspb.ActualLRPEvent{ActualLrp: a})
}

func groupEvent(what string, a *bbspb.ActualLRP) event {
	return newEvent(aboutGroup, "actual_lrp_"+what, "", &bbspb.ActualLRPGroupEvent{Group: &bbspb.ActualLRPGroup{Instance: a}})
}

// instanceChanged names the instance as it is; one that CRASHED has none any
// longer, and is named as it was.
func instanceChanged(before, after *bbspb.ActualLRP) event {
	key := after.InstanceKey
	if key.InstanceGuid == "" {
		key = before.InstanceKey
	}
	return newEvent(aboutInstance, "actual_lrp_instance_changed", key.CellId, &bbspb.ActualLRPChangedEvent{
		Key: after.Key, InstanceKey: key, Before: model.Info(before), After: model.Info(after)})
}

func crashed(before, after *bbspb.ActualLRP) event {
	return newEvent(aboutCrash, "actual_lrp_crashed", before.InstanceKey.CellId, &bbspb.ActualLRPCrashedEvent{
		Key: before.Key, InstanceKey: before.InstanceKey, CrashCount: after.CrashCount, CrashReason: after.CrashReason, Since: after.Since})
}

// decoded is the message of a row; nil for none.
func decoded(v any) *bbspb.DesiredLRP {
	row, ok := v.(*store.BBSDesired)
	if !ok {
		return nil
	}
	d, err := bbsrows.Decode(row)
	if err != nil {
		return nil // the store had decoded it before it was written
	}
	return d.Message
}

func desiredEvents(before, after *bbspb.DesiredLRP) []event {
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil:
		return []event{newEvent(aboutDesired, "desired_lrp_created", "", &bbspb.DesiredLRPEvent{DesiredLrp: after})}
	case after == nil:
		return []event{newEvent(aboutDesired, "desired_lrp_removed", "", &bbspb.DesiredLRPEvent{DesiredLrp: before})}
	}
	return []event{newEvent(aboutDesired, "desired_lrp_changed", "", &bbspb.DesiredLRPChangedEvent{Before: before, After: after})}
}

func taskEvents(c store.Change) []event {
	before, after := eventTask(c.Before), eventTask(c.After)
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil:
		return []event{newEvent(aboutTask, "task_created", "", &bbspb.TaskEvent{Task: after})}
	case after == nil:
		return []event{newEvent(aboutTask, "task_removed", "", &bbspb.TaskEvent{Task: before})}
	}
	return []event{newEvent(aboutTask, "task_changed", "", &bbspb.TaskChangedEvent{Before: before, After: after})}
}

// eventTask is a task as events have it. Of one of Cloud Foundry's, what it runs
// is not sent: a client that wants it asks for the task.
func eventTask(v any) *bbspb.Task {
	switch row := v.(type) {
	case *lrp.Task:
		return model.PresentTask(row, lrp.RunInfo{})
	case *store.BBSTask:
		if m, err := taskMessage(row); err == nil {
			return m
		}
	}
	return nil
}
