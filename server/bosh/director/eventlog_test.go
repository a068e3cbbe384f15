package director

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"cupola/store/cf"
)

// TestEventLogGrows checks that what a client has read of a task's events never changes.
func TestEventLogGrows(t *testing.T) {
	var rows []*cf.BOSHTaskEvent
	for n, e := range [][3]string{{"Preparing deployment", "manifest", "started"}, {"Preparing deployment", "manifest", "finished"},
		{"Updating instance nats", "nats/0 (g)", "started"}, {"Updating instance nats", "nats/1 (g)", "started"}, {"Updating instance nats", "nats/0 (g)", "finished"},
		{"Updating instance nats", "nats/1 (g)", "failed"}} {
		rows = append(rows, &cf.BOSHTaskEvent{Resource: cf.Resource{CreatedAt: time.Unix(int64(n+1), 0)}, Stage: e[0], Subject: e[1], State: e[2], Detail: "why"})
	}
	task := &cf.BOSHTask{State: cf.BOSHProcessing}
	var before []byte
	for n := range len(rows) + 1 {
		now, err := EventLog(task, rows[:n])
		if err != nil || !bytes.HasPrefix(now, before) || bytes.Count(now, []byte("\n")) != n {
			t.Fatalf("after %d events: got %s, %v; want more than %s", n, now, err, before)
		}
		before = now
	}
	task.State, task.Result, task.EndedAt = cf.BOSHError, "it failed", time.Unix(9, 0)
	last, err := EventLog(task, rows)
	if err != nil || !bytes.HasPrefix(last, before) {
		t.Fatalf("got %s, %v; want more than %s", last, err, before)
	}
	lines := slices.Collect(bytes.Lines(last))
	var failed logLine
	var end taskError
	if err := json.Unmarshal(lines[5], &failed); err != nil || failed.Stage != "Updating instance" || !slices.Equal(failed.Tags, []string{"nats"}) || failed.Index != 2 || failed.Data.Error != "why" {
		t.Errorf("got %s, %v", lines[5], err)
	}
	if err := json.Unmarshal(lines[6], &end); err != nil || end.Error.Message != "it failed" || end.Error.Code != 100 {
		t.Errorf("got %s, %v", lines[6], err)
	}
}
