package alerts

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"cupola/store/cf"
)

// Finding is a condition that is there now.
type Finding struct {
	Rule     string
	Subject  string // identifies what it is about
	Name     string // of the subject, for people
	Text     string
	Mend     string
	Severity cf.AlertSeverity // "": the rule's
}

// World is all that step decides from.
type World struct {
	Now      time.Time
	Rules    []Rule
	Open     []*cf.Alert // those that are not over
	Found    []Finding
	Unknown  map[string]bool // rules of which it is not known now what is true: their alerts stay
	Silences []*cf.AlertSilence
}

// Step is one decision: the alert's new row, and the event that its targets get.
type Step struct {
	Alert cf.Alert
	Drop  bool   // a pending alert that is over without having fired
	Event string // "": no event
}

// The pauses between repetitions: twice as long each time.
const (
	firstRepeat = time.Hour
	maxRepeat   = 24 * time.Hour
)

// minAbsence is how long a condition must be gone before its alert is over, unless the
// rule's own duration is shorter: what comes and goes is one alert.
const minAbsence = time.Minute

// key identifies an open alert.
type key struct{ rule, subject string }

// step compares what is found with the open alerts, and returns those that change.
func step(w World) (all []Step) {
	rules, open := map[string]Rule{}, map[key]*cf.Alert{}
	for _, r := range w.Rules {
		rules[r.Name] = r
	}
	for _, a := range w.Open {
		open[key{a.Rule, a.Subject}] = a
	}
	seen := map[key]bool{}
	for _, f := range w.Found {
		k, r := key{f.Rule, f.Subject}, rules[f.Rule]
		if seen[k] || !r.Enabled {
			continue
		}
		seen[k] = true
		if s, changed := w.seen(r, open[k], f); changed {
			all = append(all, s)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(open), func(a, b key) int {
		return cmp.Or(strings.Compare(a.rule, b.rule), strings.Compare(a.subject, b.subject))
	}) {
		if r := rules[k.rule]; !seen[k] && !(w.Unknown[k.rule] && r.Enabled) {
			if s, changed := w.absent(r, *open[k]); changed {
				all = append(all, s)
			}
		}
	}
	return all
}

// seen moves the alert of a finding; was is nil where there is none yet.
func (w World) seen(r Rule, was *cf.Alert, f Finding) (s Step, changed bool) {
	s.Alert = cf.Alert{Resource: cf.Resource{CreatedAt: w.Now}, Rule: f.Rule, Subject: f.Subject, State: cf.AlertPending}
	if was != nil {
		s.Alert = *was
	}
	a := &s.Alert
	a.Name, a.Text, a.Mend, a.Severity, a.AbsentSince = f.Name, f.Text, f.Mend, cmp.Or(f.Severity, r.Severity), time.Time{}
	if a.State == cf.AlertPending && w.Now.Sub(a.CreatedAt) >= r.For {
		a.State, a.FiredAt = cf.AlertFiring, w.Now
	}
	if a.State == cf.AlertFiring && !w.silenced(a) {
		s.Event = w.announce(r, a)
	}
	return s, was == nil || *a != *was
}

// announce marks a firing alert as sent to the targets, for the first time or again.
func (w World) announce(r Rule, a *cf.Alert) (event string) {
	switch {
	case !a.Announced:
		a.Announced, event = true, cf.AlertEventFiring
	case !a.RepeatAt.IsZero() && !w.Now.Before(a.RepeatAt):
		a.Repeats, event = a.Repeats+1, cf.AlertEventRepeated
	default:
		return ""
	}
	a.RepeatAt = time.Time{}
	if !r.Once {
		a.RepeatAt = w.Now.Add(min(firstRepeat<<min(a.Repeats, 10), maxRepeat))
	}
	return event
}

// absent moves an alert whose condition was not found.
func (w World) absent(r Rule, a cf.Alert) (s Step, changed bool) {
	if a.State == cf.AlertPending {
		return Step{Alert: a, Drop: true}, true
	}
	if a.AbsentSince.IsZero() {
		a.AbsentSince, changed = w.Now, true
	}
	if w.Now.Sub(a.AbsentSince) < min(r.For, minAbsence) && r.Enabled {
		return Step{Alert: a}, changed
	}
	a.State, a.ResolvedAt, a.RepeatAt = cf.AlertResolved, w.Now, time.Time{}
	s = Step{Alert: a}
	if a.Announced {
		s.Event = cf.AlertEventResolved
	}
	return s, true
}

func (w World) silenced(a *cf.Alert) bool {
	return slices.ContainsFunc(w.Silences, func(s *cf.AlertSilence) bool {
		return w.Now.Before(s.EndsAt) && (s.Rule == "" || s.Rule == a.Rule) && isOf(a.Name, s.Name)
	})
}

// isOf reports whether a subject's name is the given one, or below it: "org/space" is
// of all its apps.
func isOf(name, of string) bool {
	return of == "" || name == of || strings.HasPrefix(name, of+"/") || strings.HasPrefix(name, of+" ")
}
