package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// callersAreKnown has an app reached by a domain that enforces policies, with the
// certificate that its container has: not before a policy names it, and not
// after.
func (d *daemon) callersAreKnown(t *testing.T, port int) {
	t.Helper()
	read := func(name string) []byte {
		_, body, err := d.get("probe.localhost", "/file?path=/etc/cf-instance-credentials/"+name)
		if err != nil {
			t.Fatal(err)
		}
		return []byte(body[strings.Index(body, "-----BEGIN"):])
	}
	pair, err := tls.X509KeyPair(read("instance.crt"), read("instance.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(d.dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	const host = "back.apps.identity"
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host, Certificates: []tls.Certificate{pair}}}}
	soon := func(want int) {
		t.Helper()
		eventually(t, 10*time.Second, func() string {
			req, err := http.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("https://127.0.0.1:%d/", port), nil)
			if err != nil {
				return err.Error()
			}
			req.Host = host
			res, err := client.Do(req)
			if err != nil {
				return err.Error()
			}
			res.Body.Close()
			if res.StatusCode != want {
				return fmt.Sprintf("got %d; want %d", res.StatusCode, want)
			}
			return ""
		})
	}
	var domain, route, policy struct{ GUID string }
	d.api("POST", "/v3/domains", doc{"name": "apps.identity", "enforce_route_policies": true, "route_policies_scope": "space"}, &domain)
	d.api("POST", "/v3/routes", doc{"host": "back", "relationships": doc{"space": toOne(d.first("/v3/spaces?names=dev")), "domain": toOne(domain.GUID)}}, &route)
	d.api("POST", "/v3/routes/"+route.GUID+"/destinations", doc{"destinations": []doc{{"app": doc{"guid": d.app("probe")}}}}, nil)
	soon(403)
	d.api("POST", "/v3/route_policies", doc{"source": "cf:app:" + d.app("probe"), "relationships": doc{"route": toOne(route.GUID)}}, &policy)
	soon(200)
	if status, _, err := d.get(host, "/"); status != 421 || err != nil {
		t.Errorf("got %d, %v without a certificate; want 421", status, err)
	}
	d.api("DELETE", "/v3/route_policies/"+policy.GUID, nil, nil)
	soon(403)
}
