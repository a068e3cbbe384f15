package egress_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/runtime/egress"
	"cupola/runtime/egress/egresstest"
)

// errLetThrough ends each connection that a guard allows, so that no test that
// fails asks a cloud for its secrets.
var errLetThrough = errors.New("let through")

// TestDialedAddressIsChecked dials addresses, and names that lead to them: only
// what is dialed shows where a name leads.
func TestDialedAddressIsChecked(t *testing.T) {
	n := egresstest.New(t)
	for name, g := range map[string]egress.Guard{"strict": egresstest.Strict, "local": egresstest.Local, "operator": {Operator: true}} {
		dialer := g.Dialer(time.Minute)
		guard := dialer.ControlContext
		dialer.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
			if err := guard(ctx, network, address, c); err != nil {
				return err
			}
			return errLetThrough
		}
		for _, target := range n.Refused(g) {
			if _, err := dialer.DialContext(t.Context(), "tcp", target.Address); !errors.Is(err, egress.ErrAddress) {
				t.Errorf("%s: %s (%s): got %v; want %v", name, target.Name, target.Address, err, egress.ErrAddress)
			}
		}
	}
}

// TestTransportChecksWhereNamesLead asks for names that lead to listeners of
// the test.
func TestTransportChecksWhereNamesLead(t *testing.T) {
	n, asked := egresstest.New(t), 0
	transport := egresstest.Strict.Transport(time.Minute)
	for _, target := range n.Targets {
		if !strings.HasPrefix(target.Address, "loopback.test:") && !strings.HasPrefix(target.Address, "container.test:") {
			continue
		}
		asked++
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+target.Address, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(r)
		if !errors.Is(err, egress.ErrAddress) {
			t.Errorf("%s (%s): got %v; want %v", target.Name, target.Address, err, egress.ErrAddress)
		}
		if err == nil {
			answer.Body.Close()
		}
	}
	if c := n.Connections(); asked != 2 || c > 0 {
		t.Errorf("%d names led to %d connections; want 2 and 0", asked, c)
	}
}
