package api

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// appliedAtOnce applies manifests beside each other, and counts those whose jobs
// succeed; the others must fail with the words.
func (w *world) appliedAtOnce(t *testing.T, n int, refused string, text func(i int) string) int {
	t.Helper()
	w.token("space_developer")
	var made atomic.Int32
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			got := w.ask("space_developer", "POST", "/v3/spaces/space-1/actions/apply_manifest", text(i), "application/x-yaml")
			if got.status != 202 {
				t.Errorf("got %d %s; want 202", got.status, got.text)
				return
			}
			switch job := w.ask("space_developer", "GET", "/v3/jobs/"+guidOf(got), "", ""); {
			case strings.Contains(job.text, `"state":"COMPLETE"`):
				made.Add(1)
			case !strings.Contains(job.text, `"state":"FAILED"`) || !strings.Contains(job.text, refused):
				t.Errorf("got %s; want it failed: %s", job.text, refused)
			}
		})
	}
	wait.Wait()
	return int(made.Load())
}

// TestManifestsAtOnce applies 50 manifests at a time that would make apps with
// routes, and then 50 that would each have another running app take more memory:
// as many succeed as the quotas have room for. Of the others stay the apps, as in
// Cloud Controller, but nothing else.
func TestManifestsAtOnce(t *testing.T) {
	const manifests, room, mb = 50, 7, 16
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		return seedApps(tx, manifests, func(p *cf.Process, app *cf.App) {
			p.MemoryMB, p.Instances, app.State = mb, 1, cf.Started
		})
	})
	count := func(path string) float64 {
		return w.ask("admin", "GET", path, "", "").json.(map[string]any)["pagination"].(map[string]any)["total_results"].(float64)
	}
	apps, routes := count("/v3/apps"), count("/v3/routes")
	w.run(t, []step{{method: "POST", path: "/v3/space_quotas", body: fmt.Sprintf(`{"name": "s", "apps": {"total_memory_in_mb": %d}, "routes": {"total_routes": %d},
		"relationships": {"organization": {"data": {"guid": "org-1"}}, "spaces": {"data": [{"guid": "space-1"}]}}}`, (manifests+room)*mb, int(routes)+room), status: 201}})
	made := w.appliedAtOnce(t, manifests, "Routes quota exceeded for space 'dev'.", func(i int) string {
		return fmt.Sprintf("applications:\n- name: new-%d\n  default-route: true\n", i)
	})
	if gotApps, gotRoutes := count("/v3/apps")-apps, count("/v3/routes")-routes; made != room || gotApps != manifests || gotRoutes != room {
		t.Errorf("%d manifests were applied, %v apps and %v routes made; want %d apps and else %d", made, gotApps, gotRoutes, manifests, room)
	}
	grown := w.appliedAtOnce(t, manifests, "memory space_quota_exceeded", func(i int) string {
		return fmt.Sprintf("applications:\n- name: app-%d\n  instances: 2\n", 100+i)
	})
	if grown != room {
		t.Errorf("%d apps have grown; want %d", grown, room)
	}
	w.run(t, []step{{method: "GET", path: "/v3/spaces/space-1/usage_summary", status: 200,
		want: fmt.Sprintf(`{"usage_summary": {"memory_in_mb": %d, "started_instances": %d}}`, (manifests+room)*mb, manifests+room)}})
}
