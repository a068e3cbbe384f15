package store

import (
	"database/sql"
	"io/fs"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// openBefore makes a database as it was before a migration.
func openBefore(t *testing.T, migration string) (dir string, writer *sql.DB) {
	t.Helper()
	dir = t.TempDir()
	writer, err := open(filepath.Join(dir, "cupola.db"), "_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	writer.SetMaxOpenConns(1)
	s := &Store{writer: writer}
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if step == migration {
			break
		}
		if err := s.step(step); err != nil {
			t.Fatal(err)
		}
	}
	return dir, writer
}

// migrated opens the store, which brings its database up to date.
func migrated(t *testing.T, dir string, writer *sql.DB) *Store {
	t.Helper()
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestRoutesMigrate takes routes with all that names them through the migration
// that gives them ports: it makes their table again.
func TestRoutesMigrate(t *testing.T) {
	dir, writer := openBefore(t, "migrations/0018_tcp_routes.sql")
	const common, values = "guid, created_at, updated_at, labels, annotations", "1, 1, '{}', '{}'"
	for _, row := range []string{
		"orgs (" + common + ", name, suspended, quota_guid) VALUES ('org', " + values + ", 'o', 0, NULL)",
		"spaces (" + common + ", name, org_guid, allow_ssh) VALUES ('space', " + values + ", 's', 'org', 1)",
		"domains (" + common + ", name, internal, shared_orgs) VALUES ('domain', " + values + ", 'd', 0, '[]')",
		"routes (" + common + ", space_guid, domain_guid, host, path, destinations, options) VALUES ('route', " + values + ", 'space', 'domain', 'h', '/p', '[{\"app_guid\":\"app\"},{\"app_guid\":\"app\",\"port\":9000}]', '{}')",
		"service_instances (" + common + ", type, name, space_guid, shared_spaces, tags, last_operation, credentials, syslog_drain_url, route_service_url, dashboard_url, maintenance_version, broker_metadata) VALUES ('si', " +
			values + ", 'user-provided', 'n', 'space', '[]', '[]', '{}', x'', x'', x'', '', '', '')",
		"route_bindings (" + common + ", instance_guid, route_guid, route_service_url, last_operation) VALUES ('rb', " + values + ", 'si', 'route', x'', '{}')",
	} {
		if _, err := writer.Exec("INSERT INTO " + row); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
	}
	s := migrated(t, dir, writer)
	write(t, s, func(tx *Tx) error {
		r, err := Routes.Get(tx, "route")
		if err != nil || r.Host != "h" || r.Path != "/p" || r.Port != 0 || r.DomainGUID != "domain" {
			t.Errorf("got %+v, %v", r, err)
		}
		leads := func(app string) bool {
			found, err := Routes.By(tx, "app_guids", app)
			return err == nil && len(found) == 1
		}
		if !leads("app") {
			t.Error("the route is not found by the app that it leads to")
		}
		r.Destinations = []cf.Destination{{GUID: "d", AppGUID: "next"}, {GUID: "e", AppGUID: "next", Port: 9000}}
		if err := Routes.Update(tx, r); err != nil || leads("app") || !leads("next") {
			t.Errorf("%v; after a change it is found by app: %v, by next: %v", err, leads("app"), leads("next"))
		}
		if b, err := RouteBindings.By(tx, "route_guids", "route"); err != nil || len(b) != 1 {
			t.Errorf("got %v, %v; want the route's binding", b, err)
		}
		return nil
	})
	var astray int
	if err := s.reader.QueryRow("SELECT count(*) FROM pragma_foreign_key_check").Scan(&astray); err != nil || astray > 0 {
		t.Errorf("%d rows name what is not there: %v", astray, err)
	}
}

// TestOwnersMigrate finds the instance of BOSH that each older row is of.
func TestOwnersMigrate(t *testing.T) {
	dir, writer := openBefore(t, "migrations/0028_actual_owner.sql")
	rows := []string{"bosh_deployments (guid, created_at, updated_at, name, version, manifest) VALUES ('d', 1, 1, 'site', 1, x'')"}
	for guid, name := range map[string]string{"short": "'web', 1", "long": "'web.1', 0"} {
		rows = append(rows, "bosh_instances (guid, created_at, updated_at, deployment_guid, group_name, idx, az, lifecycle, goal, phase, since, digest, next, renew, renewed, task_guid, chosen, canary, failure) VALUES ('"+
			guid+"', 1, 1, 'd', "+name+", '', 'service', 'started', 'running', 1, 'ab', '', 0, 0, '', 0, 0, '')")
	}
	for _, guid := range []string{"site.web.1.nginx.http.0123456789abcdef", "site.web.1.0.nginx.http.fedcba9876543210", "app-rev"} {
		rows = append(rows, "actual_lrps (process_guid, idx, domain, instance_guid, cell_id, state, crash_count, crash_reason, placement_error, since, address, ports, ready, stopping, epoch, revision) VALUES ('"+
			guid+"', 0, 'x', '', '', 'UNCLAIMED', 0, '', '', 1, '', '[]', 0, 0, '', 0)")
	}
	for _, row := range rows {
		if _, err := writer.Exec("INSERT INTO " + row); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
	}
	s := migrated(t, dir, writer)
	read(t, s, func(tx *Tx) error {
		for guid, want := range map[string]lrp.Owner{
			"site.web.1.nginx.http.0123456789abcdef": {GUID: "short", Part: "nginx/http"}, "site.web.1.0.nginx.http.fedcba9876543210": {GUID: "long", Part: "nginx/http"}, "app-rev": {},
		} {
			a, err := ActualLRPs.First(tx, Query{Where: map[string][]string{"process_guids": {guid}}})
			if err != nil || a.Owner != want {
				t.Errorf("%s: got %+v, %v; want %+v", guid, a, err, want)
			}
		}
		return nil
	})
}

// TestBindingFormMigrates holds that the processes of an app keep its form of binding files from the day on which each has its own.
func TestBindingFormMigrates(t *testing.T) {
	dir, writer := openBefore(t, "migrations/0029_process_binding_form.sql")
	for _, row := range []string{
		"orgs (guid, created_at, updated_at, labels, annotations, name, suspended) VALUES ('org', 1, 1, '{}', '{}', 'o', 0)",
		"spaces (guid, created_at, updated_at, labels, annotations, name, org_guid, allow_ssh) VALUES ('space', 1, 1, '{}', '{}', 's', 'org', 1)",
		"apps (guid, created_at, updated_at, labels, annotations, name, space_guid, state, lifecycle, env, ssh_enabled, revisions_on, rev, binding_form) VALUES ('app', 1, 1, '{}', '{}', 'a', 'space', 'STARTED', '{}', x'', 1, 1, 0, 'service-binding-k8s')",
		"processes (guid, created_at, updated_at, labels, annotations, app_guid, type, command, instances, memory_mb, disk_mb, log_rate_limit, health_check, readiness_check, revision_guid, user, sidecars) VALUES ('process', 1, 1, '{}', '{}', 'app', 'web', '', 1, 1, 1, 1, '{}', '{}', '', '', '[]')",
	} {
		if _, err := writer.Exec("INSERT INTO " + row); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
	}
	s := migrated(t, dir, writer)
	if err := s.Read(t.Context(), func(tx *Tx) error {
		p, err := Processes.Get(tx, "process")
		if err == nil && p.BindingForm != "service-binding-k8s" {
			t.Errorf("got the form %q; want the app's", p.BindingForm)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestBuildpackSidecarsMigrate gives processes the sidecars of their app's droplet, and usage events the admin's name of its buildpack.
func TestBuildpackSidecarsMigrate(t *testing.T) {
	dir, writer := openBefore(t, "migrations/0032_buildpack_sidecars.sql")
	const common, values = "guid, created_at, updated_at, labels, annotations", "1, 1, '{}', '{}'"
	process := func(guid, kind, sidecars string) string {
		return "processes (" + common + ", app_guid, type, command, instances, memory_mb, disk_mb, log_rate_limit, health_check, readiness_check, revision_guid, user, sidecars, droplet_guid, rev, placement, services, binding_form) VALUES ('" +
			guid + "', " + values + ", 'app', '" + kind + "', '', 1, 1, 1, 1, '{}', '{}', '', '', '" + sidecars + "', '', 0, '{}', x'', '')"
	}
	for _, row := range []string{
		"orgs (" + common + ", name, suspended) VALUES ('org', " + values + ", 'o', 0)",
		"spaces (" + common + ", name, org_guid, allow_ssh) VALUES ('space', " + values + ", 's', 'org', 1)",
		"apps (" + common + ", name, space_guid, state, lifecycle, env, ssh_enabled, revisions_on, rev, droplet_guid) VALUES ('app', " + values + ", 'a', 'space', 'STOPPED', '{}', x'', 1, 1, 0, '0d9b7f2e-0000-4000-8000-000000000001')",
		"droplets (" + common + ", app_guid, state, error, digest, size, stack, lifecycle, buildpacks, process_types, sidecars, execution_metadata, image) VALUES ('0d9b7f2e-0000-4000-8000-000000000001', " + values +
			", 'app', 'STAGED', '', '', 0, 'host', '{}', '[{\"name\":\"ruby_buildpack\",\"buildpack_name\":\"ruby\"}]', '{}', '[{\"guid\":\"\",\"name\":\"a\",\"command\":\"./a\",\"process_types\":[\"web\"],\"origin\":\"buildpack\"},{\"guid\":\"\",\"name\":\"b\",\"command\":\"./b\",\"process_types\":[\"web\",\"worker\"],\"origin\":\"buildpack\"}]', '', '')",
		process("web", "web", `[{"guid":"mine","name":"a","command":"./mine","process_types":["web"],"origin":"user"}]`), process("worker", "worker", "null"), process("clock", "clock", "null"),
	} {
		if _, err := writer.Exec("INSERT INTO " + row); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
	}
	s := migrated(t, dir, writer)
	write(t, s, func(tx *Tx) error {
		b := cf.Sidecar{GUID: "0d9b7f2e-0000-4000-8000-000000000001", Name: "b", Command: "./b", ProcessTypes: []string{"web", "worker"}, Origin: "buildpack"}
		mine := cf.Sidecar{GUID: "mine", Name: "a", Command: "./mine", ProcessTypes: []string{"web"}, Origin: "user"}
		for guid, want := range map[string][]cf.Sidecar{"web": {mine, b}, "worker": {b}, "clock": {}} {
			p, err := Processes.Get(tx, guid)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(want, p.Sidecars); diff != "" {
				t.Errorf("%s (-want +got):\n%s", guid, diff)
			}
		}
		a, err := Apps.Get(tx, "app")
		if err != nil {
			return err
		}
		a.State = cf.Started
		if err := Apps.Update(tx, a); err != nil {
			return err
		}
		e, err := AppUsageEvents.First(tx, Query{})
		if err == nil && e.BuildpackName != "ruby_buildpack" {
			t.Errorf("got an event of buildpack %q; want the admin's name", e.BuildpackName)
		}
		return err
	})
}
