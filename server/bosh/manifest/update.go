package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/pattern"
)

// Update says how instances change from one version to the next. Nil fields
// were not given.
type Update struct {
	Canaries    *Count
	MaxInFlight *Count
	CanaryWatch *Watch
	UpdateWatch *Watch
	Serial      *bool
	VMStrategy  string
	InitialAZs  string // initial_deploy_az_update_strategy: serial or parallel

	line int
}

// over returns u with what it does not say taken from base.
func (u Update) over(base Update) Update {
	u.Canaries = or(u.Canaries, base.Canaries)
	u.MaxInFlight = or(u.MaxInFlight, base.MaxInFlight)
	u.CanaryWatch = or(u.CanaryWatch, base.CanaryWatch)
	u.UpdateWatch = or(u.UpdateWatch, base.UpdateWatch)
	u.Serial = or(u.Serial, base.Serial)
	if u.VMStrategy == "" {
		u.VMStrategy = base.VMStrategy
	}
	if u.InitialAZs == "" {
		u.InitialAZs = base.InitialAZs
	}
	return u
}

func or[T any](p, other *T) *T {
	if p != nil {
		return p
	}
	return other
}

// UpdateOf is how a group is updated: as it says itself, else as the manifest says.
func (m *Manifest) UpdateOf(g *InstanceGroup) Update { return g.Update.over(m.Update) }

// Count is a number of instances, or a percentage of them.
type Count struct {
	N       int
	Percent bool
}

// of is the count for n instances, a percentage rounded down. It is at least
// min, and never more than n.
func (c *Count) of(n, least int) int {
	k := 0
	switch {
	case c != nil && c.Percent:
		k = n * c.N / 100
	case c != nil:
		k = c.N
	}
	return min(max(k, least), n)
}

// CanariesOf is how many of n instances are updated first; none when the
// manifest does not say. A percentage above 0 is at least one.
func (u Update) CanariesOf(n int) int {
	if u.Canaries != nil && u.Canaries.Percent && u.Canaries.N > 0 {
		return u.Canaries.of(n, 1)
	}
	return u.Canaries.of(n, 0)
}

// MaxInFlightOf is how many of n instances are updated at once, at least one.
func (u Update) MaxInFlightOf(n int) int { return u.MaxInFlight.of(n, 1) }

// InSerial reports whether the group waits for those before it. Other than in
// BOSH, groups are updated all at once unless the manifest says otherwise.
func (u Update) InSerial() bool { return u.Serial != nil && *u.Serial }

// Watch is how long to wait for instances: at least Low to see whether they
// stay, at most High for them to get ready. A single number is both, as in BOSH.
type Watch struct{ Low, High time.Duration }

// maxWatch bounds a watch time.
const maxWatch = 30 * 24 * time.Hour

var watchRange = pattern.Lazy(`^\s*(\d+)\s*-\s*(\d+)\s*$`)
var watchSingle = pattern.Lazy(`^\s*(\d+)\s*$`)

// parseWatch reads a watch time: milliseconds, or a range of them.
func parseWatch(s string) (Watch, error) {
	var low, high string
	if m := watchRange().FindStringSubmatch(s); m != nil {
		low, high = m[1], m[2]
	} else if m := watchSingle().FindStringSubmatch(s); m != nil {
		low, high = m[1], m[1]
	} else {
		return Watch{}, fmt.Errorf("watch time string did not match regexp: %s", cut(s, 60))
	}
	lo, err1 := strconv.ParseInt(low, 10, 64)
	hi, err2 := strconv.ParseInt(high, 10, 64)
	if most := maxWatch.Milliseconds(); err1 != nil || err2 != nil || lo > most || hi > most {
		return Watch{}, fmt.Errorf("the watch time %s is longer than 30 days; it is in milliseconds", strings.TrimSpace(cut(s, 60)))
	}
	w := Watch{time.Duration(lo) * time.Millisecond, time.Duration(hi) * time.Millisecond}
	if w.Low > w.High {
		return Watch{}, fmt.Errorf("the watch time %s begins after its end", strings.TrimSpace(cut(s, 60)))
	}
	return w, nil
}

func update(o *object) (u Update) {
	if o == nil {
		return u
	}
	defer o.done()
	return Update{Canaries: o.count("canaries"), MaxInFlight: o.count("max_in_flight"), CanaryWatch: o.watch("canary_watch_time"),
		UpdateWatch: o.watch("update_watch_time"), Serial: o.switched("serial"), VMStrategy: o.text("vm_strategy"),
		InitialAZs: o.text("initial_deploy_az_update_strategy"), line: o.Line}
}

func (o *object) watch(key string) *Watch {
	n := o.want(key, yaml.ScalarNode, "a watch time")
	if n == nil || n.Value == "" || isVariable(n) {
		return nil
	}
	w, err := parseWatch(n.Value)
	if err != nil {
		o.d.found.errorf(o.at(key, n), "%v", err)
		return nil
	}
	return &w
}

var countText = pattern.Lazy(`^\s*(\d{1,9})(%?)\s*$`)

// ParseCount parses a number of instances, or a percentage like 50%.
func ParseCount(text string) (Count, error) {
	m := countText().FindStringSubmatch(text)
	if m == nil {
		return Count{}, fmt.Errorf("expected a number or a percentage, got %q", cut(text, 60))
	}
	c := Count{Percent: m[2] != ""}
	c.N, _ = strconv.Atoi(m[1]) // at most nine digits
	if c.Percent && c.N > 100 {
		return Count{}, fmt.Errorf("%d%% is more than all instances", c.N)
	}
	return c, nil
}

func (o *object) count(key string) *Count {
	n := o.want(key, yaml.ScalarNode, "a number or a percentage")
	if n == nil || n.Value == "" || isVariable(n) {
		return nil
	}
	c, err := ParseCount(n.Value)
	if err != nil {
		o.d.found.errorf(o.at(key, n), "%v", err)
		return nil
	}
	return &c
}
