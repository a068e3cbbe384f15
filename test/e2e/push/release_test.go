package push

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/test/e2e"
)

// TestReleaseCommand pushes an app whose release command fails, then works, then fails again:
// the first push starts nothing, the last replaces nothing, and the pusher sees the output.
func TestReleaseCommand(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	dir := t.TempDir()
	e2e.WriteManifest(t, dir, e2e.Doc{"name": "rel", "memory": "32M", "disk_quota": "128M", "stack": "minifs", "no-route": true, "health-check-type": "process"})
	push := func(release string, fails bool) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "Procfile"), []byte("web: sleep 1000\nrelease: "+release+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := d.Run("push", dir)
		if (err != nil) != fails {
			t.Fatalf("push: %v; want it to fail: %t\n%s", err, fails, out)
		}
		return out
	}
	const failed = "the release command failed: Exited with status 3"
	if out := push("echo no database; exit 3", true); !strings.Contains(out, failed) || !strings.Contains(out, "no database") {
		t.Errorf("the push does not say why it failed:\n%s", out)
	}
	if all := d.Stats("rel", "web"); len(all) > 0 && all[0].State == "RUNNING" {
		t.Errorf("the app runs: %+v", all)
	}
	if out := push("echo migrated", false); !strings.Contains(out, "migrated") {
		t.Errorf("the push does not show the output:\n%s", out)
	}
	before := e2e.GUIDs(d.Running("rel", "web", 1))
	push("exit 3", true)
	if after := e2e.GUIDs(d.Running("rel", "web", 1)); after[0] != before[0] {
		t.Errorf("the instance was replaced by a push whose release command failed")
	}
	tasks := d.First("/v3/apps/" + d.App("rel") + "/tasks?names=release&states=SUCCEEDED")
	if tasks == "" {
		t.Error("no task of the release command is listed")
	}
}
