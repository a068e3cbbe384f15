package uaa

import (
	"strings"
	"sync"
	"time"
)

// UAA's default lockout policy: five failures within an hour shut a name out
// for five minutes.
const (
	lockoutFailures = 5
	lockoutWindow   = time.Hour
	lockoutTime     = 5 * time.Minute
)

// lockout counts failed attempts by user name.
type lockout struct {
	mu       sync.Mutex
	attempts map[string][]time.Time
}

func newLockout() *lockout { return &lockout{attempts: map[string][]time.Time{}} }

func (l *lockout) allows(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.recentLocked(name)
	return len(a) < lockoutFailures || time.Since(a[len(a)-1]) > lockoutTime
}

func (l *lockout) failed(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.attempts) > 10000 {
		clear(l.attempts) // many names is an attack on memory, not on one user
	}
	a := append(l.recentLocked(name), time.Now())
	l.attempts[strings.ToLower(name)] = a[max(0, len(a)-lockoutFailures):]
}

func (l *lockout) succeeded(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.attempts, strings.ToLower(name))
}

func (l *lockout) recentLocked(name string) []time.Time {
	a := l.attempts[strings.ToLower(name)]
	for len(a) > 0 && time.Since(a[0]) > lockoutWindow {
		a = a[1:]
	}
	return a
}
