package store

import (
	"io/fs"
	"log/slog"
	"path/filepath"
	"testing"

	"cupola/store/cf"
)

// TestRoutesMigrate takes routes with all that names them through the migration
// that gives them ports: it makes their table anew.
func TestRoutesMigrate(t *testing.T) {
	dir := t.TempDir()
	writer, err := open(filepath.Join(dir, "cupola.db"), "_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	writer.SetMaxOpenConns(1)
	before := &Store{writer: writer}
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range steps {
		if step == "migrations/0018_tcp_routes.sql" {
			break
		}
		if err := before.step(step, i+1); err != nil {
			t.Fatal(err)
		}
	}
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
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
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
