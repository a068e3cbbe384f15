package executor

import (
	"context"
	"net"
	"time"

	"cupola/server/kube/podcell"
)

// Waits of Dial while the addresses of a cluster's pods are not known.
const (
	guessTime  = 300 * time.Millisecond
	guessPause = 50 * time.Millisecond
)

// Dial connects to a container on whichever cell it is. Until a cluster has said which pods it has, each attempt is short: that the
// address is one of a pod may be known at the next.
func (e *Executor) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil || len(e.Pods) == 0 {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	for {
		if p := e.podsAt(host); p != nil {
			return p.Dial(ctx, network, address)
		}
		if e.podsKnown() {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		conn, err := (&net.Dialer{Timeout: guessTime}).DialContext(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(guessPause):
		}
	}
}

// podsAt is the cluster that has a container at an address; nil of none.
func (e *Executor) podsAt(ip string) *podcell.Cell {
	for _, p := range e.Pods {
		if p.At(ip) {
			return p
		}
	}
	return nil
}

// podsKnown reports whether all clusters have said which pods they have.
func (e *Executor) podsKnown() bool {
	for _, p := range e.Pods {
		if !p.Known() {
			return false
		}
	}
	return true
}
