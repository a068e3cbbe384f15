package routing

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestRouteService sends requests for a route through a service first, which
// sends them on as X-Cf-Forwarded-Url says.
func TestRouteService(t *testing.T) {
	files := e2e.NewCertificate(t)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", files.CA) // whom the daemon trusts
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		to, err := url.Parse(req.Header.Get("X-Cf-Forwarded-Url"))
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		out := req.Clone(req.Context())
		out.RequestURI, out.Host = "", to.Host
		out.URL = &url.URL{Scheme: "http", Host: d.Addr, Path: to.Path, RawQuery: to.RawQuery}
		res, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		defer res.Body.Close()
		w.WriteHeader(res.StatusCode)
		io.WriteString(w, "by way of a service: ")
		io.Copy(w, res.Body)
	}))
	service.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	service.Config.ErrorLog = log.New(io.Discard, "", 0)
	service.StartTLS()
	t.Cleanup(service.Close)

	d.PushProbe("probe")
	route := d.First("/v3/routes?hosts=probe")
	var made struct{ GUID string }
	d.API("POST", "/v3/service_instances", e2e.Doc{"type": "user-provided", "name": "gate", "route_service_url": service.URL,
		"relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev"))}}, &made)
	d.API("POST", "/v3/service_route_bindings", e2e.Doc{"relationships": e2e.Doc{"route": e2e.ToOne(route), "service_instance": e2e.ToOne(made.GUID)}}, nil)
	answers := func(want string) {
		t.Helper()
		e2e.Eventually(t, time.Minute, func() string {
			status, body, err := d.Get("probe.localhost", "/")
			if err == nil && status == 200 && strings.HasPrefix(body, want) {
				return ""
			}
			return strings.TrimSpace(body)
		})
	}
	answers("by way of a service: ready")
	d.Kill()
	d.Start()
	answers("by way of a service: ready")

	service.Close()
	if status, _, err := d.Get("probe.localhost", "/"); status != 502 || err != nil {
		t.Errorf("got %d, %v; want 502 without the service", status, err)
	}
	d.API("DELETE", "/v3/service_route_bindings/"+d.First("/v3/service_route_bindings?route_guids="+route), nil, nil)
	answers("ready")
}
