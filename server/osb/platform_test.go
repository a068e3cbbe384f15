package osb_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cupola/server/osb"
)

// What each request of a platform must have (Open Service Broker API v2.17: API
// Version Header, Originating Identity, Request Identity, Platform to Service
// Broker Authentication, Polling Last Operation).
func TestRequestsOfThePlatform(t *testing.T) {
	var seen []*http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r)
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte(`{"state": "succeeded", "services": []}`))
	}))
	defer s.Close()
	c, b, ctx := osb.New(osb.Config{}), osb.Broker{URL: s.URL, Username: "u", Password: "p:w"}, t.Context()
	i := osb.Instance{GUID: "i-1", OfferingID: "service/1", PlanID: "plan 1", User: "user-1"}
	bind := osb.Binding{Instance: i, GUID: "b-1"}
	const operation = "task 10%/+&=ü"
	requests := map[string]func() error{
		"GET /v2/catalog": func() error { _, err := c.Catalog(ctx, b, "user-1"); return err },
		"PUT /v2/service_instances/i-1": func() error {
			_, err := c.Provision(ctx, b, osb.Provision{Instance: i})
			return err
		},
		"PATCH /v2/service_instances/i-1":  func() error { _, err := c.Update(ctx, b, osb.Change{Instance: i}); return err },
		"GET /v2/service_instances/i-1":    func() error { _, err := c.FetchInstance(ctx, b, i); return err },
		"DELETE /v2/service_instances/i-1": func() error { _, err := c.Deprovision(ctx, b, i); return err },
		"PUT /v2/service_instances/i-1/service_bindings/b-1": func() error {
			_, err := c.Bind(ctx, b, osb.Bind{Binding: bind})
			return err
		},
		"GET /v2/service_instances/i-1/service_bindings/b-1":    func() error { _, err := c.FetchBinding(ctx, b, bind, nil); return err },
		"DELETE /v2/service_instances/i-1/service_bindings/b-1": func() error { _, err := c.Unbind(ctx, b, bind); return err },
		"GET /v2/service_instances/i-1/last_operation": func() error {
			_, err := c.InstanceOperation(ctx, b, i, operation)
			return err
		},
		"GET /v2/service_instances/i-1/service_bindings/b-1/last_operation": func() error {
			_, err := c.BindingOperation(ctx, b, bind, operation)
			return err
		},
	}
	identities := map[string]bool{}
	for name, ask := range requests {
		seen = nil
		if err := ask(); err != nil && name != "GET /v2/catalog" { // an empty catalog is a fault, after the request
			t.Errorf("%s: %v", name, err)
		}
		if len(seen) != 1 || seen[0].Method+" "+seen[0].URL.Path != name {
			t.Errorf("%s: got %d requests", name, len(seen))
			continue
		}
		r := seen[0]
		user, password, ok := r.BasicAuth()
		who, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Header.Get("X-Broker-API-Originating-Identity"), "cloudfoundry "))
		if !ok || user != "u" || password != "p:w" || r.Header.Get("X-Broker-API-Version") != "2.17" || err != nil || string(who) != `{"user_id":"user-1"}` {
			t.Errorf("%s: got %v", name, r.Header)
		}
		identity := r.Header.Get("X-Broker-API-Request-Identity")
		if identity == "" || identities[identity] {
			t.Errorf("%s: the request's identity is %q", name, identity)
		}
		identities[identity] = true
		q := r.URL.Query()
		if strings.HasSuffix(name, "last_operation") && q.Get("operation") != operation {
			t.Errorf("%s: the operation is %q; want %q", name, q.Get("operation"), operation)
		}
		if strings.HasPrefix(name, "DELETE") || strings.HasSuffix(name, "last_operation") {
			if q.Get("service_id") != i.OfferingID || q.Get("plan_id") != i.PlanID {
				t.Errorf("%s: got %v", name, q)
			}
		}
		if strings.HasPrefix(name, "DELETE") && q.Get("accepts_incomplete") != "true" {
			t.Errorf("%s: got %v", name, q)
		}
	}
}

// The conformance list of docs/clients.md names tests: they exist.
func TestConformanceListNamesTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "## Service brokers")
	if !found {
		t.Fatal("docs/clients.md has no list of service brokers")
	}
	tests := map[string]bool{}
	for _, dir := range []string{".", "../broker", "../api", "../control/services", "../drain", "../router", "../../test/e2e/services"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(code, -1) {
				tests[string(m[1])] = true
			}
		}
	}
	names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(list, -1)
	if len(names) < 20 {
		t.Errorf("the list names %d tests", len(names))
	}
	for _, m := range names {
		if !tests[m[1]] {
			t.Errorf("docs/clients.md names %s, which is no test", m[1])
		}
	}
}
