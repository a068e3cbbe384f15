package sleep

import (
	"time"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store/cf"
)

// app is what a decision about an app depends on.
type app struct {
	*cf.App
	times     cf.SleepTimes
	processes []*cf.Process // that have instances
	sleeps    []*cf.Sleep
	instances []*lrp.Actual // of the processes, also of older versions
	busy      string        // why it stays awake, whatever its instances do; "" is not
}

// deed is what becomes of an app.
type deed string

const (
	nothing deed = ""
	freeze  deed = "freeze" // it falls asleep
	stop    deed = "stop"   // it sleeps on without instances
	wake    deed = "wake"
	forget  deed = "forget" // it does not sleep, and has nothing that could be woken
)

// verdict is a deed, or when to look again.
type verdict struct {
	deed
	why string    // of a wake
	at  time.Time // with nothing; zero: when a row changes
}

// step decides about an app. idle is when the last request to it ended, and frozen reports
// whether an instance is frozen.
func step(a app, now, idle time.Time, frozen func(instanceGUID string) bool) verdict {
	if len(a.sleeps) > 0 {
		return a.stepAsleep(now, frozen)
	}
	if a.times.After == 0 || a.awake() != "" {
		return verdict{}
	}
	if due := idle.Add(a.times.After); due.After(now) {
		return verdict{at: due}
	}
	return verdict{deed: freeze}
}

func (a app) stepAsleep(now time.Time, frozen func(string) bool) verdict {
	if a.App == nil || a.State != cf.Started || len(a.processes) == 0 {
		return verdict{deed: forget}
	}
	if a.times.After == 0 {
		return verdict{deed: wake, why: "it is not to sleep any longer"}
	}
	if a.busy != "" {
		return verdict{deed: wake, why: a.busy}
	}
	if !a.hold() {
		return verdict{deed: wake, why: "it was started again or scaled"}
	}
	if a.sleeps[0].State == cf.SleepStopped {
		return verdict{}
	}
	if why := a.changing(); why != "" {
		return verdict{deed: wake, why: why}
	}
	for _, i := range a.instances {
		if !frozen(i.InstanceGUID) {
			return verdict{deed: wake, why: "an instance is awake"}
		}
	}
	if a.times.StopAfter == 0 {
		return verdict{}
	}
	if due := a.sleeps[0].Since.Add(a.times.StopAfter); due.After(now) {
		return verdict{at: due}
	}
	return verdict{deed: stop}
}

// hold reports whether all processes are as they were when the app fell asleep.
func (a app) hold() bool {
	of := map[string]*cf.Sleep{}
	for _, s := range a.sleeps {
		of[s.ProcessGUID] = s
	}
	for _, p := range a.processes {
		if !desire.Sleeps(of[p.GUID], p, a.App) {
			return false
		}
	}
	return len(a.sleeps) == len(a.processes)
}

// awake is why the app does not fall asleep; "" if it may.
func (a app) awake() string {
	switch {
	case a.State != cf.Started || len(a.processes) == 0:
		return "it does not run"
	case a.busy != "":
		return a.busy
	}
	return a.changing()
}

// changing returns why instances are changing; "" if exactly the desired ones run and are
// ready.
func (a app) changing() string {
	want := map[string]int{}
	for _, p := range a.processes {
		want[desire.ProcessGUID(p, a.App)] = p.Instances
	}
	for _, i := range a.instances {
		if !i.Routable() || want[i.ProcessGUID] == 0 {
			return "an instance comes or goes"
		}
		want[i.ProcessGUID]--
	}
	for _, n := range want {
		if n != 0 {
			return "an instance comes or goes"
		}
	}
	return ""
}
