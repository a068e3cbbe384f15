package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"cupola/store"
)

// What a request asks for is bounded: else one could have the daemon count to
// what it cannot, or past what its numbers hold.
func TestNumbersAreBounded(t *testing.T) {
	w := newWorld(t)
	const huge = "4611686018427387904"
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/v3/processes/app-1/actions/scale", `{"instances": 2147483647}`, "Instances must be less than or equal to 10000"},
		{"POST", "/v3/processes/app-1/actions/scale", `{"memory_in_mb": ` + huge + `}`, "Memory in mb must be less than or equal to 2147483647"},
		{"POST", "/v3/processes/app-1/actions/scale", `{"instances": 1e99}`, "Instances must be an integer"},
		{"POST", "/v3/processes/app-1/actions/scale", `{"disk_in_mb": ` + huge + `}`, "Disk in mb must be less than or equal to 2147483647"},
		{"POST", "/v3/apps/app-1/tasks", `{"command": "x", "memory_in_mb": ` + huge + `}`, "Memory in mb must be less than or equal to 2147483647"},
		{"POST", "/v3/builds", `{"package": {"guid": "package-1"}, "staging_memory_in_mb": -1}`, "Staging memory in mb must be greater than 0"},
		{"POST", "/v3/builds", `{"package": {"guid": "package-1"}, "staging_memory_in_mb": ` + huge + `}`, "Staging memory in mb must be less than"},
		{"POST", "/v3/builds", `{"package": {"guid": "package-1"}, "staging_disk_in_mb": ` + huge + `}`, "disk limit exceeded"},
		{"POST", "/v3/roles", orgRole("organization_user", `{"guid": "`+strings.Repeat("x", 201)+`"}`), "must be between 1 and 200 characters"},
	} {
		if got := w.ask("admin", c.method, c.path, c.body, ""); got.status != 422 || !strings.Contains(got.text, c.want) {
			t.Errorf("%s %s: got %d %s; want 422 %s", c.path, c.body, got.status, got.text, c.want)
		}
	}
	got := w.ask("admin", "POST", "/v3/spaces/space-1/actions/apply_manifest", "applications:\n- name: hello\n  instances: 2000000\n", "application/x-yaml")
	w.saved["job"] = guidOf(got)
	w.run(t, []step{
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "FAILED", "errors": [{"detail": "For application 'hello': Instances must be less than or equal to 10000"}]}`},
	})
}

// What an app keeps is bounded as a whole: many small requests add up to no more
// than one large one may ask for.
func TestWhatAnAppKeepsIsBounded(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 5000)
	object := func(n int, value string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"k%d": "%s"`, i, value))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	for _, c := range []struct{ method, path, body, want string }{
		{"PATCH", "/v3/processes/app-1", `{"command": "` + long + `"}`, "Command must be between 1 and 4096 characters"},
		{"PATCH", "/v3/apps/app-1/environment_variables", `{"var": {"A": "` + strings.Repeat("x", 128<<10) + `"}}`, "Environment variable 'A' is too long: 131074 bytes with its name; at most 131070 are accepted"},
		{"PATCH", "/v3/apps/app-1/environment_variables", `{"var": ` + object(110, long) + `}`, "Environment variables are too large"},
		{"PATCH", "/v3/apps/app-1", `{"metadata": {"labels": ` + object(501, "x") + `}}`, "Metadata labels may have at most 500 entries, they have 501"},
		{"PATCH", "/v3/apps/app-1", `{"metadata": {"annotations": ` + object(501, "x") + `}}`, "Metadata annotations may have at most 500 entries, they have 501"},
		{"PATCH", "/v3/apps/app-1", `{"metadata": {"annotations": ` + object(60, long) + `}}`, "Metadata annotations may have at most 262144 bytes"},
		{"POST", "/v3/apps/app-1/sidecars", `{"name": "s", "process_types": ["web"], "command": "` + long + `"}`, "Command is too long (maximum is 4096 characters)"},
		{"POST", "/v3/apps/app-1/sidecars", `{"name": "` + long[:256] + `", "process_types": ["web"], "command": "x"}`, "Name is too long (maximum is 255 characters)"},
		{"POST", "/v3/droplets", `{"relationships": {"app": {"data": {"guid": "app-1"}}}, "process_types": ` + object(51, "x") + `}`, "Process types may have at most 50 entries, it has 51"},
	} {
		if got := w.ask("admin", c.method, c.path, c.body, ""); got.status != 422 || !strings.Contains(got.text, c.want) {
			t.Errorf("%s: got %d %.300s; want 422 %s", c.path, got.status, got.text, c.want)
		}
	}
	for i := range 51 {
		want := map[bool]int{true: 201, false: 422}[i < 50]
		if got := w.ask("admin", "POST", "/v3/apps/app-1/sidecars", fmt.Sprintf(`{"name": "s%d", "process_types": ["web"], "command": "x"}`, i), ""); got.status != want {
			t.Errorf("sidecar %d: got %d %s; want %d", i, got.status, got.text, want)
		}
	}
}

// Of requests that cannot all be granted, one is.
func TestRacesHaveOneWinner(t *testing.T) {
	w := newWorld(t)
	w.token("space_developer")
	for _, c := range []struct {
		path, body string
		granted    int
		refused    string
	}{
		{"/v3/apps", `{"name": "race", ` + toSpace + `}`, 201, "App with the name 'race' already exists."},
		{"/v3/builds", `{"package": {"guid": "package-1"}}`, 201, "Only one build can be STAGING at a time per application."},
		{"/v3/routes", newRoute("space-1", "domain-1", "race", ""), 201, "Route already exists with host 'race' for domain 'apps.test'."},
	} {
		answers := make([]answer, 8)
		var wait sync.WaitGroup
		for i := range answers {
			wait.Go(func() { answers[i] = w.ask("space_developer", "POST", c.path, c.body, "") })
		}
		wait.Wait()
		granted := 0
		for _, a := range answers {
			switch {
			case a.status == c.granted:
				granted++
			case a.status != http.StatusUnprocessableEntity || !strings.Contains(a.text, c.refused):
				t.Errorf("%s: got %d %s", c.path, a.status, a.text)
			}
		}
		if granted != 1 {
			t.Errorf("%s: %d were granted; want 1", c.path, granted)
		}
	}
}

// Two pushes of one manifest at the same time make one app with one route.
func TestConcurrentManifests(t *testing.T) {
	w := newWorld(t)
	w.token("space_developer")
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			text := fmt.Sprintf("applications:\n- name: twice\n  instances: %d\n  default-route: true\n", i+1)
			if got := w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", text, "application/x-yaml"); got.status != 202 {
				t.Errorf("got %d %s", got.status, got.text)
			}
		})
	}
	wait.Wait()
	w.run(t, []step{
		{method: "GET", path: "/v3/apps?names=twice", status: 200, want: `{"pagination": {"total_results": 1}}`},
		{method: "GET", path: "/v3/routes?hosts=twice", status: 200, want: `{"pagination": {"total_results": 1}, "resources": [{"destinations": [{"port": 8080}]}]}`},
	})
	w.saved["app"] = firstGUID(t, w.ask("admin", "GET", "/v3/apps?names=twice", "", ""))
	w.run(t, []step{{method: "GET", path: "/v3/apps/{app}/processes", status: 200, want: `{"pagination": {"total_results": 1}}`}})
}

// An org goes with its domains, though others have routes in them.
func TestDeleteOrgWithSharedDomain(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error { return seedAccess(tx) })
	w.run(t, []step{
		{method: "POST", path: "/v3/routes", body: newRoute("space-2", "domain-2", "a", ""), status: 201, save: "route"},
		{method: "DELETE", path: "/v3/service_instances/db-1?purge=true", status: 204}, // no broker is here to delete them
		{method: "DELETE", path: "/v3/service_instances/db-2?purge=true", status: 204},
		{method: "DELETE", path: "/v3/organizations/org-1", status: 202, save: "job"},
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "COMPLETE"}`},
		{method: "GET", path: "/v3/routes/{route}", status: 404},
		{method: "GET", path: "/v3/organizations/org-1", status: 404},
	})
}
