package main

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
)

// TestRouteService has requests for a route go through a service first, which
// sends them on as X-Cf-Forwarded-Url says.
func TestRouteService(t *testing.T) {
	files := newCertificate(t)
	pair, err := tls.LoadX509KeyPair(files.cert, files.key)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", files.ca) // whom the daemon trusts
	d := startDaemon(t, needBinary(t))
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		to, err := url.Parse(req.Header.Get("X-Cf-Forwarded-Url"))
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		out := req.Clone(req.Context())
		out.RequestURI, out.Host = "", to.Host
		out.URL = &url.URL{Scheme: "http", Host: d.addr, Path: to.Path, RawQuery: to.RawQuery}
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

	d.pushProbe("probe")
	route := d.first("/v3/routes?hosts=probe")
	var made struct{ GUID string }
	d.api("POST", "/v3/service_instances", doc{"type": "user-provided", "name": "gate", "route_service_url": service.URL,
		"relationships": doc{"space": toOne(d.first("/v3/spaces?names=dev"))}}, &made)
	d.api("POST", "/v3/service_route_bindings", doc{"relationships": doc{"route": toOne(route), "service_instance": toOne(made.GUID)}}, nil)
	answers := func(want string) {
		t.Helper()
		eventually(t, 5*time.Second, func() string {
			status, body, err := d.get("probe.localhost", "/")
			if err == nil && status == 200 && strings.HasPrefix(body, want) {
				return ""
			}
			return strings.TrimSpace(body)
		})
	}
	answers("by way of a service: ready")
	d.kill()
	d.start()
	answers("by way of a service: ready")

	service.Close()
	if status, _, err := d.get("probe.localhost", "/"); status != 502 || err != nil {
		t.Errorf("got %d, %v; want 502 without the service", status, err)
	}
	d.api("DELETE", "/v3/service_route_bindings/"+d.first("/v3/service_route_bindings?route_guids="+route), nil, nil)
	answers("ready")
}
