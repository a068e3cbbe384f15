package api

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// applied applies a manifest and returns the details of the request's or the job's
// errors.
func (w *world) applied(t *testing.T, text string) string {
	t.Helper()
	got := w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", text, "application/x-yaml")
	if got.status == 202 {
		got = w.ask("space_developer", "GET", "/v3/jobs/"+guidOf(got), "", "")
	}
	var doc struct {
		Errors []struct{ Title, Detail string }
	}
	if err := json.Unmarshal([]byte(got.text), &doc); err != nil {
		t.Fatal(err)
	}
	var details []string
	for _, e := range doc.Errors {
		if e.Title != "CF-UnprocessableEntity" {
			e.Detail = e.Title
		}
		details = append(details, e.Detail)
	}
	return strings.Join(details, "; ")
}

// urlsOf are the URLs of an app's routes.
func (w *world) urlsOf(t *testing.T, app string) (urls []string) {
	t.Helper()
	list := w.ask("space_developer", "GET", "/v3/apps?names="+app, "", "")
	got := w.ask("space_developer", "GET", "/v3/apps/"+firstGUID(t, list)+"/routes", "", "")
	var doc struct{ Resources []struct{ URL string } }
	if err := json.Unmarshal([]byte(got.text), &doc); err != nil {
		t.Fatal(err)
	}
	for _, r := range doc.Resources {
		urls = append(urls, r.URL)
	}
	return urls
}

// The host of a default route is the app's name as it is (CC:
// app/actions/app_apply_manifest.rb, update_routes and validate_name_dns_compliant!).
func TestDefaultRoutes(t *testing.T) {
	w := newWorld(t)
	const tooLong = "Failed to create default route from app name: Host cannot exceed 63 characters"
	const illegal = `Failed to create default route from app name: Host must be either "*" or contain only alphanumeric characters, "_", or "-"`
	for _, tt := range []struct{ name, url, fault string }{
		{"plain", "plain.apps.test", ""},
		{"my_app", "my_app.apps.test", ""},
		{"my-app", "my-app.apps.test", ""},
		{"MyOther", "MyOther.apps.test", ""},
		{"-dash-", "-dash-.apps.test", ""},
		{strings.Repeat("x", 63), strings.Repeat("x", 63) + ".apps.test", ""},
		{strings.Repeat("x", 64), "", tooLong},
		{strings.Repeat("ä", 64), "", tooLong},
		{"my app", "", illegal},
		{"my.app", "", illegal},
		{"größe", "", illegal},
		{"*", "", illegal},
	} {
		want := tt.fault
		if want != "" {
			want = fmt.Sprintf("For application '%s': %s", tt.name, tt.fault)
		}
		if got := w.applied(t, fmt.Sprintf("applications: [{name: %q, default-route: true}]", tt.name)); got != want {
			t.Errorf("%s: got %q; want %q", tt.name, got, want)
		}
		if tt.url == "" {
			continue
		}
		if got := w.urlsOf(t, tt.name); len(got) != 1 || got[0] != tt.url {
			t.Errorf("%s: got %q; want %q", tt.name, got, tt.url)
		}
	}
	if got := w.applied(t, "applications: [{name: myother, default-route: true}]"); got != "" {
		t.Error(got)
	}
	if got := w.urlsOf(t, "myother"); len(got) != 1 || got[0] != "MyOther.apps.test" {
		t.Errorf("got %q; want the route that there is in another case", got)
	}
}

// A random route is the app's name, two words and two letters (CC:
// lib/cloud_controller/random_route_generator.rb).
func TestRandomRoutes(t *testing.T) {
	w := newWorld(t)
	if got := w.applied(t, "applications: [{name: My_App, random-route: true}]"); got != "" {
		t.Fatal(got)
	}
	got := w.urlsOf(t, "My_App")
	if len(got) != 1 || !regexp.MustCompile(`^My_App-[a-z]+-[a-z]+-[a-z]{2}\.apps\.test$`).MatchString(got[0]) {
		t.Errorf("got %q", got)
	}
	for name, want := range map[string]string{
		"my app":                "Host format is invalid.",
		strings.Repeat("x", 60): "host must be no more than 63 characters",
	} {
		got := w.applied(t, fmt.Sprintf("applications: [{name: %q, random-route: true}]", name))
		if !strings.HasPrefix(got, fmt.Sprintf("For application '%s': For route '%s-", name, name)) || !strings.HasSuffix(got, ".apps.test': "+want) {
			t.Errorf("got %q; want %q", got, want)
		}
	}
}

// The routes of a manifest are checked by the message (CC:
// app/messages/manifest_routes_update_message.rb), and what gets past it by the model
// (CC: app/actions/route_create.rb, validation_error!).
func TestManifestRouteFaults(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 64)
	for _, tt := range []struct{ routes, want string }{
		{"routes: 5", "Routes must be a list of route objects"},
		{"routes: ~", "Routes must be a list of route objects"},
		{"routes: [{route: nodot}, {route: 'ftp://a.apps.test'}]", "The route 'nodot' is not a properly formed URL; For application 'a': The route 'ftp://a.apps.test' is not a properly formed URL"},
		{"routes: [{route: 'http://a.apps.test:80'}]", "The route 'http://a.apps.test:80' is not a properly formed URL"},
		{"routes: [{route: 'tcp.test:99999'}]", "The route 'tcp.test:99999' is not a properly formed URL"},
		{"routes: [{route: 'a.apps.test', protocol: udp}]", "Route protocol must be 'http1', 'http2' or 'tcp'."},
		{"no-route: x", "No-route must be a boolean"},
		{"random-route: x", "Random-route must be a boolean"},
		{"default-route: x", "Default-route must be a boolean"},
		{"{random-route: true, default-route: true}", "Random-route and default-route may not be used together"},
		{"routes: [{route: a.none.test}]", "No domains exist for route a.none.test"},
		{"routes: [{route: a.b.apps.test}]", "No domains exist for route a.b.apps.test"},
		{"routes: [{route: 'a b.apps.test'}]", "For route 'a b.apps.test': Host format is invalid."},
		{"routes: [{route: " + long + ".apps.test}]", "For route '" + long + ".apps.test': host must be no more than 63 characters"},
		{"routes: [{route: a.apps.test/}]", "For route 'a.apps.test/': Path cannot be a single '/'."},
		{"routes: [{route: 'a.apps.test/<'}]", "For route 'a.apps.test/<': Path is invalid."},
		{"routes: [{route: 'a.apps.test/" + strings.Repeat(long, 2) + "'}]", "For route 'a.apps.test/" + strings.Repeat(long, 2) + "': Path exceeds 128 characters."},
		{"routes: [{route: '*.apps.test'}]", "CF-NotAuthorized"},
	} {
		fields := strings.Trim(tt.routes, "{}")
		if strings.HasPrefix(tt.routes, "routes") {
			fields = tt.routes
		}
		want := "For application 'a': " + tt.want
		if strings.HasPrefix(tt.want, "CF-") {
			want = tt.want
		}
		if got := w.applied(t, "applications: [{name: a, "+fields+"}]"); got != want {
			t.Errorf("%s: got %q; want %q", tt.routes, got, want)
		}
	}
	for _, routes := range []string{"https://b.apps.test/x?y=1#z", "B.Apps.Test/x", " b.apps.test/x "} {
		if got := w.applied(t, fmt.Sprintf("applications: [{name: b, routes: [{route: %q}]}]", routes)); got != "" {
			t.Errorf("%s: %s", routes, got)
		}
	}
	if got := w.urlsOf(t, "b"); len(got) != 1 || got[0] != "b.apps.test/x" {
		t.Errorf("got %q; want one route", got)
	}
}
