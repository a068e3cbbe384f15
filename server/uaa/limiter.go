package uaa

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// What one address may fail within a window, whatever the names: the lockout
// alone would let it try one password with every name.
const (
	addressFailures = 100
	addressWindow   = 5 * time.Minute
	maxAddresses    = 10000 // remembered; more is an attack on memory
)

// limiter counts failed logins by address. The zero value is ready.
type limiter struct {
	mu    sync.Mutex
	since map[netip.Prefix]*tries
}

type tries struct {
	n     int
	began time.Time
}

// source returns the address for which failures are counted; for IPv6 the
// network, since one user has all of it. This machine is exempt: all users of
// a proxy would share its count.
func source(remote string) (netip.Prefix, bool) {
	at, err := netip.ParseAddrPort(remote)
	if err != nil || at.Addr().IsLoopback() {
		return netip.Prefix{}, false
	}
	bits := 64
	if addr := at.Addr().Unmap(); addr.Is4() {
		bits, at = 32, netip.AddrPortFrom(addr, 0)
	}
	p, err := at.Addr().WithZone("").Prefix(bits)
	return p, err == nil
}

// check refuses those who have failed too often.
func (l *limiter) check(r *http.Request) error {
	from, ok := source(r.RemoteAddr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.since[from]; ok && t != nil && t.n >= addressFailures && time.Since(t.began) < addressWindow {
		return refuse(http.StatusTooManyRequests, "too_many_requests", "Too many failed attempts from your address. Try again in a few minutes.")
	}
	return nil
}

// failed counts a failure.
func (l *limiter) failed(r *http.Request) {
	from, ok := source(r.RemoteAddr)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since == nil || len(l.since) >= maxAddresses {
		l.since = map[netip.Prefix]*tries{}
	}
	t := l.since[from]
	if t == nil || time.Since(t.began) >= addressWindow {
		t = &tries{began: time.Now()}
		l.since[from] = t
	}
	t.n++
}
