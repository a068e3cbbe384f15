package bulkhead

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	for _, files := range []uint64{256, 800, 1024, 4096, 1 << 20, 1<<64 - 1} {
		l := LimitsFor(files)
		if sum := l.Strangers + l.API + l.Apps + l.Backends + l.SSH; sum > l.Files*6/10 || l.Apps > l.Backends {
			t.Errorf("%d files: %+v are %d", files, l, sum)
		}
	}
	if l := LimitsFor(800); l.Apps < 100 || l.API < 100 {
		t.Errorf("800 files: %+v", l)
	}
	own, err := ProcessLimits()
	if err != nil || own.Files == 0 {
		t.Errorf("got %+v, %v", own, err)
	}
}

// However many greedy keys there are, there is a slot for the next.
func TestShare(t *testing.T) {
	s := NewShare[string](100, 1)
	greedy := func(key string) (n int) {
		for s.Take(key) {
			n++
		}
		return n
	}
	got := []int{greedy("a"), greedy("b"), greedy("c"), greedy("d")}
	if want := []int{50, 25, 13, 6}; !slices.Equal(got, want) {
		t.Errorf("got %d; want %d", got, want)
	}
	if !s.Take("honest") || s.Used() != 95 {
		t.Errorf("no slot of %d was left", 100-s.Used())
	}
	if s.Refused() != 4 {
		t.Errorf("%d refusals are counted; want 4", s.Refused())
	}
	for range 50 {
		s.Put("a")
	}
	if !s.Take("b") || s.Used() != 46 {
		t.Errorf("slots did not come back: %d used", s.Used())
	}
	three := NewShare[int](100, 3)
	n := 0
	for three.Take(1) {
		n++
	}
	if n != 75 {
		t.Errorf("an address got %d of 100", n)
	}
}

func TestStrangersPushOutTheirOwn(t *testing.T) {
	s, attacker, honest := NewStrangers(4), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
	var ended []int
	add := func(from netip.Prefix, n int) *Stranger {
		one, _ := s.Add(from, func() { ended = append(ended, n) })
		return one
	}
	first := add(honest, 0)
	for n := 1; n <= 5; n++ {
		add(attacker, n)
	}
	if !slices.Equal(ended, []int{1, 2}) || s.Len() != 4 {
		t.Errorf("ended %d of %d", ended, s.Len())
	}
	if !s.Remove(first) || s.Remove(first) || s.Len() != 3 {
		t.Error("the honest one was pushed out")
	}
}

func TestAddress(t *testing.T) {
	for remote, want := range map[string]string{"192.0.2.7:80": "192.0.2.7/32", "[::ffff:192.0.2.7]:80": "192.0.2.7/32", "[2001:db8::1]:80": "2001:db8::/64", "[fe80::1%eth0]:1": "fe80::/64", "@": "invalid Prefix", "": "invalid Prefix"} {
		if got := AddressOf(remote).String(); got != want {
			t.Errorf("%q: got %s; want %s", remote, got, want)
		}
	}
	if Address(nil).IsValid() {
		t.Error("no address is one")
	}
}

// Clients that say nothing push out each other, and no others.
func TestWatch(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	Watch(srv.Config, 8)
	srv.Start()
	defer srv.Close()
	var silent []net.Conn
	for range 50 {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for _, c := range silent[:42] { // all but the last eight
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("a silent client is still connected: %v", err)
		}
	}
}
