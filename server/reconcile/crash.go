package reconcile

import (
	"time"

	"cupola/runtime/lrp"
)

// Diego's crash policy (bbs, restart_calculator.go and actual_lrp.go).
const (
	immediateRestarts = 3   // crashes from which an instance is CRASHED and waits
	maxCrashes        = 200 // crashes from which it is never restarted
	minBackoff        = 30 * time.Second
	maxDoublings      = 5               // 30 s doubles to 16 min
	crashResetAfter   = 5 * time.Minute // of running: the next crash counts as the first
)

// Crashed is a row after its instance crashed.
func Crashed(a lrp.Actual, reason string, now time.Time) lrp.Actual {
	if a.State == lrp.Running && now.Sub(a.Since) > crashResetAfter {
		a.CrashCount = 0
	}
	a = unclaimed(a, now)
	a.CrashCount++
	a.CrashReason = lrp.Truncate(reason)
	if a.CrashCount >= immediateRestarts {
		a.State = lrp.Crashed
	}
	return a
}

// unclaimed returns the row of an instance that must be placed again.
func unclaimed(a lrp.Actual, now time.Time) lrp.Actual {
	return lrp.Actual{Key: a.Key, Domain: a.Domain, Owner: a.Owner, State: lrp.Unclaimed, Since: now, CrashCount: a.CrashCount, CrashReason: a.CrashReason}
}

// restartAt is when a CRASHED instance is started again; never is false.
func restartAt(a lrp.Actual) (at time.Time, ever bool) {
	if a.CrashCount >= maxCrashes {
		return time.Time{}, false
	}
	doublings := min(max(a.CrashCount-immediateRestarts, 0), maxDoublings)
	return a.Since.Add(minBackoff << doublings), true
}
