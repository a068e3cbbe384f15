package machine

import (
	"strings"
	"testing"
	"time"

	"cupola/server/machine"
)

func TestRatesAreBetweenTwoSamples(t *testing.T) {
	at := time.Now()
	instance := func(guid, process string, cpu float64) machine.InstanceUse {
		return machine.InstanceUse{GUID: guid, Process: process, AppGUID: "app-" + process, CPUSeconds: cpu, MemoryBytes: 1}
	}
	a := machine.Use{At: at, Instances: []machine.InstanceUse{instance("1", "busy", 1), instance("2", "busy", 5), instance("3", "restarted", 3600)}, Requests: map[string]int64{"app-busy": 10, "app-restarted": 7}}
	b := machine.Use{At: at.Add(2 * time.Second), Instances: []machine.InstanceUse{instance("1", "busy", 2), instance("2", "busy", 5.5), instance("4", "restarted", 1), instance("5", "new", 3600)},
		Requests: map[string]int64{"app-busy": 30, "app-restarted": 5, "app-new": 4}}
	all := between(a, b)
	order(all, "cpu")
	if len(all) != 3 || all[0] != (use{Process: "busy", Instances: 2, CPU: 75, MemoryBytes: 2, Requests: 10}) || all[1].CPU != 0 || all[2].CPU != 0 || all[1].Requests != 2 || all[2].Requests != 0 {
		t.Errorf("got %+v", all)
	}
	for _, u := range between(b, b) {
		if u.CPU != 0 || u.Requests != 0 {
			t.Errorf("got rates between one and the same sample: %+v", u)
		}
	}
	all = []use{{Process: "a", CPU: 1}, {Process: "b", MemoryBytes: 1}, {Process: "c", Requests: 1}, {Process: "d", DiskBytes: 1}, {Process: "e", LogRate: 1}}
	for by, first := range map[string]string{"cpu": "a", "memory": "b", "requests": "c", "disk": "d", "logs": "e", "name": "a"} {
		if order(all, by); all[0].Process != first {
			t.Errorf("by %s: got %s first; want %s", by, all[0].Process, first)
		}
	}
	if got := sortedBy('m', "cpu") + sortedBy('x', "cpu"); got != "memorycpu" {
		t.Errorf("got %s", got)
	}
}

func TestScreenFitsTheTerminal(t *testing.T) {
	v := view{by: "cpu", width: 80, height: 24}
	for range 100 {
		v.uses = append(v.uses, use{Process: "org/space/\x1b[2J" + strings.Repeat("long", 50) + "end"})
	}
	lines := v.lines()
	if len(lines) != 24 || !strings.HasPrefix(lines[23], "by cpu") || !strings.HasSuffix(lines[6], "end") {
		t.Errorf("got %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for _, l := range lines {
		if len([]rune(l)) > 80 || strings.Contains(l, "\x1b") {
			t.Errorf("line %q is too long, or steers the terminal", l)
		}
	}
	v.fault = "refused"
	if lines := v.lines(); lines[23] != "no answer: refused" {
		t.Errorf("got %q", lines[23])
	}
	v.width, v.height = 0, 0
	if n := len(v.lines()); n != 105 {
		t.Errorf("got %d lines without a terminal; want all 105", n)
	}
	for _, tiny := range []int{1, 2, 5} { // no size makes it panic
		v.width, v.height = tiny, tiny
		if n := len(v.lines()); n != tiny {
			t.Errorf("got %d lines of %d", n, tiny)
		}
	}
}
