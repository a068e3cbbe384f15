package health

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strconv"
	"testing"
	"time"

	"cupola/runtime/lrp"
)

// app is a server with the answers that a probe may meet.
func app(t *testing.T) netip.AddrPort {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("User-Agent"); got != "diego-healthcheck" {
			t.Errorf("got User-Agent %q; want diego-healthcheck", got)
		}
		if got := r.Header.Get("X-Forwarded-Proto"); got != "https" {
			t.Errorf("got X-Forwarded-Proto %q; want https", got)
		}
	})
	mux.HandleFunc("/created", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) })
	mux.HandleFunc("/error", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		port := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).AddrPort().Port()
		http.Redirect(w, r, "http://192.0.2.1:"+strconv.Itoa(int(port))+"/ok", http.StatusFound)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return netip.MustParseAddrPort(s.Listener.Addr().String())
}

func TestProbeHTTP(t *testing.T) {
	at := app(t)
	p := prober{address: at.Addr(), dial: (&net.Dialer{}).DialContext}
	tests := []struct{ path, want string }{
		{"/ok", ""},
		{"/login", ""},
		{"/away", ""}, // a redirect to another host never leaves the container
		{"/created", `^failed to make HTTP request to '/created' on port \d+: received status code 201 in \d+ms$`},
		{"/error", `^failed to make HTTP request to '/error' on port \d+: received status code 500 in \d+ms$`},
		{"/slow", `^failed to make HTTP request to '/slow' on port \d+: timed out after 0.20 seconds$`},
	}
	for _, tt := range tests {
		c := lrp.Check{Type: lrp.CheckHTTP, Port: at.Port(), Path: tt.path, InvocationTimeout: time.Minute}
		if tt.path == "/slow" {
			c.InvocationTimeout = 200 * time.Millisecond
		}
		check(t, p.probe(t.Context(), c), tt.want)
	}
}

func TestProbeRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(l.Addr().String())
	p := prober{address: at.Addr(), dial: (&net.Dialer{}).DialContext}
	port := lrp.Check{Type: lrp.CheckPort, Port: at.Port(), InvocationTimeout: time.Minute}
	check(t, p.probe(t.Context(), port), "")
	l.Close()
	check(t, p.probe(t.Context(), port), `^failed to make TCP connection to 127.0.0.1:\d+: dial tcp 127.0.0.1:\d+: connect: connection refused$`)
	port.Type, port.Path = lrp.CheckHTTP, "/ping"
	check(t, p.probe(t.Context(), port), `^failed to make HTTP request to '/ping' on port \d+: connection refused$`)
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got error %v; want none", err)
	case want != "" && err == nil:
		t.Errorf("got no error; want %s", want)
	case want != "" && !regexp.MustCompile(want).MatchString(err.Error()):
		t.Errorf("got error %q; want %s", err, want)
	}
}
