package bosh

import (
	"strings"
	"testing"
)

// TestSharedLinks lets a deployment use the link of another one, which then can neither
// lose the link nor be deleted, unless forced.
func TestSharedLinks(t *testing.T) {
	t.Parallel()
	h := startHands(t)
	const share = `[{"type": "replace", "path": "/instance_groups/name=worker/jobs/name=worker/provides?", "value": {"worker": {"as": "workers", "shared": true}}},
		{"type": "replace", "path": "/instance_groups/name=worker/azs?", "value": ["z1", "z2"]}]`
	watchers := &boshDaemon{Daemon: h.Daemon, registry: h.registry, name: "watchers", manifest: "testdata/watchers.yml"}
	if out, err := watchers.deploy("[]"); err == nil || !strings.Contains(out, "workers") {
		t.Errorf("got %v, %s; want a link that is not shared missed", err, out)
	}
	h.must(h.deploy(share))
	watchers.must(watchers.deploy("[]"))
	contains(t, h.run("run-errand", "watchers", "watch"), "works with hands-worker, hands-worker-1 in z2\n")

	out, err := h.deploy("[]")
	if err == nil || strings.Contains(out, "Updating instance") {
		t.Errorf("got %v, %s; want the deploy refused before anything is updated", err, out)
	}
	contains(t, out, "deployment 'watchers' uses the shared link 'workers' of type 'worker', which 'hands' would no longer provide: change that deployment first, or deploy with force")
	h.fails("Deployment 'hands' shares links with 'watchers': delete these deployments first, or delete it with force", "delete", "hands")
	contains(t, h.run("run-errand", "watchers", "watch"), "in z2\n")

	h.must(h.deploy("[]", "--force"))
	if out, err := watchers.deploy("[]"); err == nil || !strings.Contains(out, "workers") {
		t.Errorf("got %v, %s; want the link missed that is shared no longer", err, out)
	}
	h.run("delete", "watchers")
	h.run("delete", "hands")
}
