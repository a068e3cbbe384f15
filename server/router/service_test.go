package router

import (
	"crypto/x509"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cupola/runtime/egress"
)

// relay is a route service: it sends requests on, changed as its user wants.
type relay struct {
	to     string // the router
	change func(*http.Request)
	seen   chan http.Header
}

func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.seen != nil {
		r.seen <- req.Header.Clone()
	}
	forwarded := req.Header.Get(forwardedURLHeader)
	out, err := http.NewRequest(req.Method, "http://"+r.to+"/", req.Body)
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	_, rest, _ := strings.Cut(forwarded, "://")
	host, path, _ := strings.Cut(rest, "/")
	out.Host, out.URL.Opaque = host, "/"+path
	out.Header = req.Header.Clone()
	if r.change != nil {
		r.change(out)
	}
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	defer res.Body.Close()
	w.Header().Set("X-Through", "service")
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}

// serviced is a site whose app has a route service at an address of ours.
func serviced(t *testing.T, r *relay, timeouts Timeouts) (s *site, app chan http.Header) {
	t.Helper()
	service := httptest.NewTLSServer(r)
	t.Cleanup(service.Close)
	cas := x509.NewCertPool()
	cas.AddCert(service.Certificate())
	s = newSite(t, Config{Services: egress.Guard{Local: true}, ServiceCAs: cas, DistrustForwarded: true, Timeouts: timeouts})
	r.to = s.addr
	app = make(chan http.Header, 10)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		app <- req.Header.Clone()
		io.WriteString(w, "app at "+req.RequestURI)
	}))
	t.Cleanup(backend.Close)
	address := strings.TrimPrefix(backend.URL, "http://")
	end := []Endpoint{{Address: address, AppGUID: appGUID}}
	s.Set(Table{Routes: []Route{{Host: "a.test", AppGUID: appGUID, ServiceURL: service.URL + "/rs?x=1", Endpoints: end},
		{Host: "b.test", AppGUID: otherApp, ServiceURL: service.URL, Endpoints: end}}})
	return s, app
}

// ask asks the router for a host's /path?q.
func (s *site) ask(t *testing.T, host string, header http.Header) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+s.addr+"/path?q", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	maps.Copy(req.Header, header)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func TestThroughARouteService(t *testing.T) {
	r := &relay{seen: make(chan http.Header, 10)}
	s, app := serviced(t, r, Timeouts{})
	res, body := s.ask(t, "a.test", http.Header{"X-Forwarded-For": {"6.6.6.6"}})
	if res.StatusCode != 200 || body != "app at /path?q" || res.Header.Get("X-Through") != "service" {
		t.Fatalf("got %s %q", res.Status, body)
	}
	service := <-r.seen
	if got := service.Get(forwardedURLHeader); got != "http://a.test/path?q" {
		t.Errorf("got %q; want the URL that was asked for", got)
	}
	got := <-app
	for _, name := range []string{forwardedURLHeader, serviceSignatureHeader, serviceMetadataHeader} {
		if service.Get(name) == "" || got.Get(name) != "" {
			t.Errorf("%s: got %q, then %q; want it for the service alone", name, service.Get(name), got.Get(name))
		}
	}
	if f := got.Get(forwardedFor); !strings.HasPrefix(f, "127.0.0.1, ") || strings.Contains(f, "6.6.6.6") {
		t.Errorf("got %q; want the client and the service", f)
	}
	if lines := s.lines(); len(lines) != 2 || !strings.HasPrefix(lines[0], appGUID) || !strings.HasPrefix(lines[1], appGUID) {
		t.Errorf("got %q; want both in the app's log", lines)
	}
}

func TestSignaturesRefused(t *testing.T) {
	other := newSeal()
	tests := map[string]func(*http.Request){
		"of another route":      func(out *http.Request) { out.Host = "b.test" },
		"of another URL":        func(out *http.Request) { out.Header.Set(forwardedURLHeader, "http://a.test/admin") },
		"not base64":            func(out *http.Request) { out.Header.Set(serviceSignatureHeader, "?") },
		"without its nonce":     func(out *http.Request) { out.Header.Del(serviceMetadataHeader) },
		"of another router":     func(out *http.Request) { signWith(out, other, time.Now()) },
		"that has been used up": nil, // by the router's own seal, below
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			r := &relay{change: change}
			s, app := serviced(t, r, Timeouts{})
			if name == "that has been used up" {
				r.change = func(out *http.Request) { signWith(out, s.seal, time.Now().Add(-2*signatureTime)) }
			}
			res, body := s.ask(t, "a.test", nil)
			if res.StatusCode != 502 || !strings.Contains(body, "Failed to validate Route Service Signature") || len(app) != 0 {
				t.Errorf("got %s %q, %d requests of the app", res.Status, body, len(app))
			}
		})
	}
}

func signWith(out *http.Request, s *seal, at time.Time) {
	signature, metadata := s.sign(out.Header.Get(forwardedURLHeader), at)
	out.Header.Set(serviceSignatureHeader, signature)
	out.Header.Set(serviceMetadataHeader, metadata)
}

// TestAServiceMayChangeThePath has a route service send a request on to another
// path of the same route.
func TestAServiceMayChangeThePath(t *testing.T) {
	s, _ := serviced(t, &relay{change: func(out *http.Request) { out.URL.Opaque = "/elsewhere" }}, Timeouts{})
	if res, body := s.ask(t, "a.test", nil); res.StatusCode != 200 || body != "app at /elsewhere" {
		t.Errorf("got %s %q", res.Status, body)
	}
}

func TestServiceThatFails(t *testing.T) {
	s, _ := serviced(t, &relay{}, Timeouts{})
	s.Set(Table{Routes: []Route{{Host: "a.test", AppGUID: appGUID, ServiceURL: "https://127.0.0.1:1", Endpoints: []Endpoint{{Address: "127.0.0.1:1"}}}}})
	if res, _ := s.ask(t, "a.test", nil); res.StatusCode != 502 || !strings.HasPrefix(res.Header.Get(routerErrorHeader), "endpoint_failure") {
		t.Errorf("got %s %q", res.Status, res.Header.Get(routerErrorHeader))
	}
	if res, body := s.ask(t, "a.test", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}); res.StatusCode != 503 || !strings.Contains(body, "not supported for routes bound to Route Services") {
		t.Errorf("websocket: got %s %q", res.Status, body)
	}
}

func TestServiceOfThisMachineIsRefused(t *testing.T) {
	s, _ := serviced(t, &relay{}, Timeouts{})
	strict := newSite(t, Config{})
	strict.Set(Table{Routes: []Route{{Host: "a.test", AppGUID: appGUID, ServiceURL: "https://" + s.addr, Endpoints: []Endpoint{{Address: s.addr}}}}})
	if res, _ := strict.ask(t, "a.test", nil); res.StatusCode != 502 || !strings.Contains(res.Header.Get(routerErrorHeader), "must not be this machine's own") {
		t.Errorf("got %s %q", res.Status, res.Header.Get(routerErrorHeader))
	}
}

func TestSlowServiceIsGivenUp(t *testing.T) {
	gone := make(chan struct{})
	s, _ := serviced(t, &relay{change: func(*http.Request) { <-gone }}, Timeouts{RouteService: 50 * time.Millisecond})
	t.Cleanup(func() { close(gone) })
	if res, _ := s.ask(t, "a.test", nil); res.StatusCode != 502 || !strings.Contains(res.Header.Get(routerErrorHeader), "deadline") {
		t.Errorf("got %s %q", res.Status, res.Header.Get(routerErrorHeader))
	}
}

// TestServiceThatIsAnApp is reached by its route, whatever the machine's own
// addresses may be.
func TestServiceThatIsAnApp(t *testing.T) {
	r := &relay{}
	service := httptest.NewServer(r)
	t.Cleanup(service.Close)
	s := newSite(t, Config{})
	r.to = s.addr
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the app") }))
	t.Cleanup(backend.Close)
	s.Set(Table{Routes: []Route{
		{Host: "rs.test", AppGUID: otherApp, Endpoints: []Endpoint{{Address: strings.TrimPrefix(service.URL, "http://"), AppGUID: otherApp}}},
		{Host: "a.test", AppGUID: appGUID, ServiceURL: "https://rs.test:8443/in", Endpoints: []Endpoint{{Address: strings.TrimPrefix(backend.URL, "http://"), AppGUID: appGUID}}},
	}})
	if res, body := s.ask(t, "a.test", nil); res.StatusCode != 200 || body != "the app" || res.Header.Get("X-Through") != "service" {
		t.Errorf("got %s %q", res.Status, body)
	}
}
