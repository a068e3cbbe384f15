package health

import (
	"context"
	"net/netip"
	"time"

	"cupola/runtime/lrp"
)

// Diego's defaults.
const (
	defaultInterval          = 30 * time.Second // between probes of a healthy container
	defaultInvocationTimeout = time.Second      // of one probe
)

// Startup probes come at once and then at doubling distances. Diego asks
// every 2 s; a probe from outside costs next to nothing, and a push waits for it.
const (
	firstPause = 10 * time.Millisecond
	maxPause   = 500 * time.Millisecond
	// monitorPause is Diego's: a monitor starts a process.
	monitorPause = 2 * time.Second
)

// Spec says what to watch.
type Spec struct {
	Address netip.Addr // of the container
	// Checks say when it is healthy, and ready; where there is nothing to probe
	// it is so at once and for ever.
	Checks lrp.CheckDefinition
	// Monitor is asked instead of liveness checks where there are none; nil is
	// none.
	Monitor func(context.Context) error
	// Exec runs the program of a check in the container; it may be nil where no
	// check has one.
	Exec func(context.Context, lrp.Run) error

	// StartTimeout bounds the wait for the first success; 0 waits for ever.
	StartTimeout time.Duration
	// Waited is how much of it an earlier daemon has waited.
	Waited time.Duration
	// Healthy skips the startup phase: the container was healthy before the
	// daemon restarted.
	Healthy bool
	// Ready and Active are the last reported state: only changes are reported.
	Ready, Active bool
	// Starved is how long the container's processes have waited for a processor so far: that much longer are the deadlines, of the start
	// and of each probe, as the package's patience allows. It may be nil.
	Starved func() time.Duration
	// Hint explains, for the app's developer, why a probe of a port found nothing; "" where it knows nothing. It may be nil.
	Hint func(port uint16) string
	// Log gets the lines that Diego writes into the app's log, at times from
	// several goroutines at once; may be nil.
	Log func(Line)
}

// Line is a line for the app's log.
type Line struct {
	Source string // "CELL" or "HEALTH"
	Err    bool
	Text   string
}

// EventType says what Run found.
type EventType string

// The events. Unhealthy and NeverHealthy are the last of a Run.
const (
	Healthy      EventType = "healthy"
	Unhealthy    EventType = "unhealthy"
	NeverHealthy EventType = "never-healthy"
	Ready        EventType = "ready"
	NotReady     EventType = "not-ready"
	Active       EventType = "active"
	Passive      EventType = "passive"
)

// Event is a change of the container's health. Reason is the crash reason in
// Diego's words for Unhealthy and NeverHealthy, the probe's text for NotReady and
// Passive.
type Event struct {
	Type   EventType
	At     time.Time
	Reason string
}

func withDefaults(c lrp.Check) lrp.Check {
	if c.InvocationTimeout <= 0 {
		c.InvocationTimeout = defaultInvocationTimeout
	}
	if c.Interval <= 0 {
		c.Interval = defaultInterval
	}
	if c.Path == "" {
		c.Path = "/"
	}
	return c
}

// probe asks one thing of a container.
type probe struct {
	ask      func(context.Context) error
	interval time.Duration // while the answer is good
	pause    time.Duration // at most, while it is not
	least    time.Duration // at least, while it is not
	delay    time.Duration // before the first; of liveness it is not heeded
	// failures and successes are how many in a row count as one; 0: 1.
	failures, successes int
}

// probes are what of checks there is to ask; none where the process' life is
// enough.
func (p prober) probes(checks []lrp.Check) []probe {
	var all []probe
	for _, c := range checks {
		if !c.Asks() {
			continue
		}
		c = withDefaults(c)
		pause := maxPause
		if c.Type == lrp.CheckExec {
			pause = monitorPause
		}
		all = append(all, probe{
			ask: func(ctx context.Context) error { return p.probe(ctx, c) }, interval: c.Interval, pause: pause,
			delay: c.InitialDelay, failures: c.Failures, successes: c.Successes,
		})
	}
	return all
}

// steady lets probes run at their interval, whatever the result: a passive
// instance may wait forever to become active.
func steady(probes []probe) []probe {
	for n := range probes {
		probes[n].pause, probes[n].least = probes[n].interval, probes[n].interval
	}
	return probes
}
