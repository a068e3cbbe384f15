package routing

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"cupola/test/e2e"
)

// callersAreKnown has an app reached by a domain that enforces policies, with the
// certificate that its container has: not before a policy names it, and not
// after.
func callersAreKnown(d *e2e.Daemon, t *testing.T, port int) {
	t.Helper()
	const host = "back.apps.identity"
	client := d.AsInstance("probe", host)
	soon := func(want int) {
		t.Helper()
		e2e.Eventually(t, time.Minute, func() string {
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
	d.API("POST", "/v3/domains", e2e.Doc{"name": "apps.identity", "enforce_route_policies": true, "route_policies_scope": "space"}, &domain)
	d.API("POST", "/v3/routes", e2e.Doc{"host": "back", "relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev")), "domain": e2e.ToOne(domain.GUID)}}, &route)
	d.API("POST", "/v3/routes/"+route.GUID+"/destinations", e2e.Doc{"destinations": []e2e.Doc{{"app": e2e.Doc{"guid": d.App("probe")}}}}, nil)
	soon(403)
	d.API("POST", "/v3/route_policies", e2e.Doc{"source": "cf:app:" + d.App("probe"), "relationships": e2e.Doc{"route": e2e.ToOne(route.GUID)}}, &policy)
	soon(200)
	if status, _, err := d.Get(host, "/"); status != 421 || err != nil {
		t.Errorf("got %d, %v without a certificate; want 421", status, err)
	}
	d.API("DELETE", "/v3/route_policies/"+policy.GUID, nil, nil)
	soon(403)
}
