package api

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	guard "cupola/runtime/fault"
	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

func TestEveryKindOfErrorHasAFault(t *testing.T) {
	text, err := os.ReadFile("../../store/cf/error.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`Kind = "(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		if f := faults[cf.Kind(m[1])]; f.status < 400 || f.code == 0 || f.title == "" {
			t.Errorf("%s: got %+v", m[1], f)
		}
	}
}

func TestClientsThatLeaveAreNoError(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", "/v3/deployments/d", nil)
	var log bytes.Buffer
	s := &Server{Config: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	leave()
	if got := s.failure(r, sql.ErrTxDone); got.status != 499 || log.Len() > 0 {
		t.Errorf("got %d, and logged %q; want 499, and nothing", got.status, log.String())
	}
}

// A token that could not be looked up is not called invalid: clients would log out.
func TestATokenThatCannotBeLookedUp(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		ctx    context.Context
		err    error
		status int
	}{
		{t.Context(), syscall.EMFILE, 503},
		{t.Context(), store.ErrFull, 507},
		{left, sql.ErrTxDone, 499},
		{t.Context(), errors.New("expired"), 401},
	} {
		s := New(t.Context(), Config{Store: newWorld(t).store, Log: slog.New(slog.DiscardHandler),
			Authenticate: func(context.Context, string) (cf.Identity, error) { return cf.Identity{}, c.err }})
		r := httptest.NewRequestWithContext(c.ctx, "GET", "/v3/apps", nil)
		r.Header.Set("Authorization", "bearer token")
		rec := httptest.NewRecorder()
		s.handle(route{"/v3/apps", authz.Anyone, inTx(func(*call) (*response, error) { return noContent() })})(rec, r)
		if rec.Code != c.status {
			t.Errorf("%v: got %d %s; want %d", c.err, rec.Code, rec.Body, c.status)
		}
	}
}

// A request that panics is answered as Cloud Controller answers what it did not
// expect, keeps nothing that it wrote, and hinders no other.
func TestRequestThatPanicsFailsAlone(t *testing.T) {
	w := newWorld(t)
	w.write(seedAccess)
	guard.Watch(func(*guard.Panic) {})
	before := guard.Counts()["api"]
	server := New(t.Context(), Config{Store: w.store, Log: slog.New(slog.DiscardHandler)})
	broken := server.handle(route{"/", public, inTx(func(*call) (*response, error) { panic("broken") })})
	rec := httptest.NewRecorder()
	broken(rec, httptest.NewRequest("POST", "/v3/apps", strings.NewReader("{}")))
	if want := `"title":"UnknownError"`; rec.Code != 500 || !strings.Contains(rec.Body.String(), want) || !strings.Contains(rec.Body.String(), "10001") {
		t.Errorf("got %d %s; want 500 with %s", rec.Code, rec.Body, want)
	}
	w.run(t, []step{{method: "PATCH", path: "/v3/apps/app-1", body: `{"name": "renamed"}`, status: 200}})
	if got := guard.Counts()["api"]; got != before+1 {
		t.Errorf("got %d panics counted; want %d", got, before+1)
	}
}

// The codes and texts are Cloud Controller's: clients match on them.
func TestRequestsThatCannotBe(t *testing.T) {
	w := newWorld(t)
	w.write(seedAccess)
	w.run(t, []step{
		{method: "PATCH", path: "/v3/apps/app-1", body: `{"name": `, status: 400, want: detail(1001, "Request invalid due to parse error: invalid request body")},
		{method: "PATCH", path: "/v3/apps/app-1", body: `[]`, status: 422, want: detail(10008, "Unknown field(s): '_json'")},
		{method: "PATCH", path: "/v3/apps/app-1", body: strings.Repeat(`{"a":`, 20000), status: 400, want: detail(1001, "Request invalid due to parse error: invalid request body")},
		{method: "PATCH", path: "/v3/apps/app-1", body: `{"environment_variables": {}, "b": 1}`, status: 422, want: detail(10008, "Unknown field(s): 'environment_variables', 'b'")},
		{method: "PATCH", path: "/v3/apps/app-1", body: `{"name": "` + strings.Repeat("x", maxBody) + `"}`, status: 413},
		{method: "PATCH", path: "/v3/apps/%00", body: `{}`, status: 404, want: detail(10010, "App not found")},
		{method: "GET", path: "/v3/apps/../apps", status: 404, want: detail(10000, "Unknown request")},
		{method: "GET", path: "/v3/apps?bogus=1", status: 400},
		{method: "GET", path: "/v3/nothing", status: 404, want: detail(10000, "Unknown request")},
		{method: "PUT", path: "/v3/apps", status: 404, want: detail(10000, "Unknown request")},
		{method: "GET", path: "/v2/users", status: 404, want: `{"code": 10000, "error_code": "CF-NotFound", "description": "Unknown request"}`},
		{method: "POST", path: "/v3/spaces/space-1/actions/apply_manifest", body: someManifest, status: 400, want: detail(1004, "Bad request: Content-Type must be yaml")},
		{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-2"}}`, status: 400, want: detail(1004, "Bad request: Cannot stage package whose state is not ready.")},
		{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-1"}}`, status: 201},
		{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-1"}}`, status: 422, want: detail(170017, "Only one build can be STAGING at a time per application.")},
		{method: "PATCH", path: "/v3/processes/app-1", body: `{"user": "root"}`, status: 422, want: detail(10008, "user invalid (requested user 'root' not allowed, permitted users are: 'vcap')")},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x", "user": "root"}`, status: 422, want: detail(10008, "user invalid (requested user 'root' not allowed, permitted users are: 'vcap')")},
		{method: "PATCH", path: "/v3/processes/app-1", body: `{"user": "VCAP"}`, status: 200, want: `{"user": "vcap"}`},
	})
	for _, c := range []struct {
		text string
		code int
		want string
	}{
		{"applications: &a\n- name: x\n", 1004, "Bad request: Manifest does not support Anchors and Aliases"},
		{"applications:\n- name: x\n" + strings.Repeat("#", 1<<20), 1004, "Bad request: Manifest size is too large. The maximum supported size is 1MB."},
		{"- a\n", 1001, "Request invalid due to parse error: invalid request body"},
		{strings.Repeat("[", 1<<19), 1001, "Request invalid due to parse error: invalid request body"},
		{"applications:\n", 10008, "Cannot parse manifest with no 'applications' field."},
	} {
		got := w.ask("admin", "POST", "/v3/spaces/space-1/actions/apply_manifest", c.text, "application/x-yaml")
		var want any
		if err := json.Unmarshal([]byte(detail(c.code, c.want)), &want); err != nil {
			t.Fatal(err)
		}
		if why := lacks(want, got.json, ""); why != "" {
			t.Errorf("%.30q: %s: got %d %.200s", c.text, why, got.status, got.text)
		}
	}
}
