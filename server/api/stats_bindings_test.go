package api

import (
	"fmt"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bindings"
	"cupola/server/desire"
	"cupola/store"
)

// hasFiles gives the instances of app-1 the files of its bindings.
func (w *world) hasFiles(since time.Time) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		all, err := store.ServiceBindings.OfApps(tx, "app-1")
		if err != nil {
			return err
		}
		files, err := bindings.Files(bindings.FormK8s, desire.Bindings(all["app-1"]))
		w.usage = lrp.Stats{FilesDigest: lrp.FilesDigest(append([]lrp.File{}, files...)), FilesSince: since}
		return err
	})
}

// TestInstancesTellTheirBindings changes bindings of an app that runs.
func TestInstancesTellTheirBindings(t *testing.T) {
	w := newWorld(t)
	stats := func(current bool, details, more string) step {
		return step{method: "GET", path: "/v3/processes/app-1/stats", status: 200,
			want: fmt.Sprintf(`{"resources": [{"details": %s, "bindings": {"current": %v%s}}]}`, details, current, more)}
	}
	const stale = `"` + staleBindings + `"`
	feature := func(enabled string) step {
		return step{method: "PATCH", path: "/v3/apps/app-1/features/service-binding-k8s", body: `{"enabled": ` + enabled + `}`, status: 200}
	}
	patch := func(n string) step {
		return step{method: "PATCH", path: "/v3/service_instances/{ups}", body: `{"credentials": {"n": ` + n + `}}`, status: 200}
	}
	w.run(t, []step{{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200}})
	w.runs()
	w.run(t, []step{
		stats(true, "null", ""),
		{method: "POST", path: "/v3/service_instances", body: fmt.Sprintf(newUPS, "ups", ""), status: 201, save: "ups"},
		{method: "POST", path: "/v3/service_credential_bindings", body: `{"type": "app", "relationships": {"app": {"data": {"guid": "app-1"}}, "service_instance": {"data": {"guid": "{ups}"}}}}`, status: 201},
		stats(false, stale, ""),
		{method: "POST", path: "/v3/apps/app-1/actions/restart", status: 200},
	})
	w.runs()
	w.run(t, []step{
		stats(true, "null", ""),
		feature("true"),
		stats(false, stale, ""), // it has the variable until it is restarted
		{method: "POST", path: "/v3/apps/app-1/actions/restart", status: 200},
	})
	w.runs()
	since := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	w.hasFiles(since)
	w.run(t, []step{
		stats(true, "null", `, "updated_at": "2026-01-02T03:04:05Z"`),
		patch("2"),
		stats(false, "null", ""), // its files are about to change
	})
	w.hasFiles(since)
	w.run(t, []step{
		stats(true, "null", ""),
		feature("false"),
		stats(false, stale, ""), // it has files, and shall have the variable
		{method: "POST", path: "/v3/apps/app-1/actions/restart", status: 200},
	})
	w.usage = lrp.Stats{}
	w.runs()
	w.run(t, []step{
		stats(true, "null", ""),
		patch("3"),
		stats(false, stale, ""),
		patch("2"),
		stats(true, "null", ""),
	})
}
