package uaa

import (
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func from(addr string) *http.Request { return &http.Request{RemoteAddr: addr} }

func TestAddressesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limiter
		for range addressFailures {
			for _, addr := range []string{"192.0.2.1:7", "[2001:db8::1]:7", "127.0.0.1:7", "[::1]:7", "nonsense"} {
				if err := l.check(from(addr)); err != nil {
					t.Fatalf("%s: limited too early", addr)
				}
				l.failed(from(addr))
			}
		}
		for addr, want := range map[string]bool{"192.0.2.1:8": true, "[::ffff:192.0.2.1]:8": true, "192.0.2.2:7": false, "[2001:db8::2]:7": true, "[2001:db8:0:1::1]:7": false,
			"127.0.0.1:7": false, "nonsense": false} {
			if got := l.check(from(addr)) != nil; got != want {
				t.Errorf("%s: limited %t; want %t", addr, got, want)
			}
		}
		<-time.After(addressWindow)
		if err := l.check(from("192.0.2.1:8")); err != nil {
			t.Error("limited after the window")
		}
	})
}

func TestAddressesAreForgotten(t *testing.T) {
	var l limiter
	for i := range maxAddresses + 1 {
		l.failed(from(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 1).String()))
	}
	if len(l.since) != 1 {
		t.Errorf("%d addresses are remembered", len(l.since))
	}
}
