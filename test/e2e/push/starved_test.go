package push

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/test/e2e"
)

// rival uses a processor as long as it runs; slow needs more than a second of it before it listens.
const (
	pinned = "import os, sys, time, http.server\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
	rival  = pinned + "while True: pass\n"
	slow   = pinned + `began = time.monotonic()
while time.process_time() < 1.2: pass
print("worked for", "more" if time.monotonic() - began > 4 else "less", "than the timeout", flush=True)
http.server.HTTPServer(("", int(os.environ["PORT"])), http.server.SimpleHTTPRequestHandler).serve_forever()
`
)

// TestAStarvedAppStarts starts an app that needs 1.2 s of a processor, within 4 s, while another app's instances take four fifths of
// that processor: its health check waits as much longer as the app waited. Diego would have killed it. On a machine that is itself busy the app waits for
// more than its processor, so that it is for make test-all; packages health and container have tests of the parts.
func TestAStarvedAppStarts(t *testing.T) {
	t.Parallel()
	if !e2e.Thorough() {
		t.Skip("make test-all runs it")
	}
	d := e2e.SharedDaemon(t)
	push := func(name, program, manifest string) {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "app.py"), []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		d.Push(dir, "applications:\n- name: "+name+"\n  stack: host\n  buildpacks: [binary_buildpack]\n  command: exec python3 app.py\n  memory: 64M\n  disk_quota: 64M\n"+manifest)
	}
	push("rival", rival, "  no-route: true\n  health-check-type: process\n  instances: 4\n")
	d.Running("rival", "web", 4)
	push("slow", slow, "  timeout: 4\n")
	if all := crashes(d, "slow"); len(all) > 0 {
		t.Errorf("it crashed: %+v", all)
	}
	said := d.Client().LogLines(t.Context(), d.App("slow"))
	if !slices.ContainsFunc(said, func(l string) bool { return strings.Contains(l, "worked for more than the timeout") }) {
		t.Errorf("the app was not starved, so that this shows nothing:\n%s", strings.Join(said, "\n"))
	}
	d.API("DELETE", "/v3/apps/"+d.App("rival"), nil, nil)
}
