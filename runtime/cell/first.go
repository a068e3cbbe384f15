package cell

import (
	"slices"
	"strconv"

	"cupola/runtime/lrp"
)

// firstStep returns the process that becomes the container's first one: it
// starts before all others of the program and outlives them. "" means that
// there is none.
//
// Such a process costs only its start, and its end is the container's. Nearly
// all containers have one.
func (b *build) firstStep() string {
	a := b.full.Action
	if len(b.full.Setup.Runs()) > 0 || slices.ContainsFunc(a.Runs(), func(r *lrp.Run) bool { return len(r.Peers) > 0 }) {
		return "" // or it needs a standard input, which the first one has not
	}
	if b.watched() && a.Codependent == nil {
		return "" // the container outlives a good end of the action
	}
	at, _ := spanning("action", a)
	return at
}

// spanning finds the process that spans all of an action's.
func spanning(at string, a lrp.Action) (string, bool) {
	if a.Run != nil {
		return at, true
	}
	found, ok := "", false
	for n, inner := range a.Inner() {
		if len(inner.Runs()) == 0 {
			continue
		}
		if ok {
			return "", false // more than one has processes
		}
		if found, ok = spanning(stepName(at, n), inner); !ok {
			return "", false
		}
		if a.Codependent != nil {
			return found, true // the others end with it
		}
	}
	return found, ok
}

// stepName names the nth step of the step at.
func stepName(at string, n int) string { return at + "." + strconv.Itoa(n) }
