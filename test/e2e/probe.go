package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// probeManifest runs testdata/probe on the stack that is on every machine.
const probeManifest = `applications:
- name: %s
  stack: minifs
  buildpacks: [binary_buildpack]
  command: ./probe
  memory: 64M
  disk_quota: 64M
`

// PushProbe builds testdata/probe and pushes it.
func (d *Daemon) PushProbe(name string) {
	d.T.Helper()
	dir := d.T.TempDir()
	CopyProgram(d.T, Program(d.T, Repository(d.T), "./test/e2e/testdata/probe"), dir, "probe")
	d.Push(dir, fmt.Sprintf(probeManifest, name))
	d.Answers(name, "ready")
}

// Push pushes a directory with a manifest.
func (d *Daemon) Push(dir, manifest string) {
	d.T.Helper()
	if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), []byte(manifest), 0o600); err != nil {
		d.T.Fatal(err)
	}
	if out, err := d.Run("push", dir); err != nil {
		d.T.Fatalf("push: %v\n%s", err, out)
	}
}

// SoonReaches wants an app to reach an address, or not, 5 s from now at last.
func (d *Daemon) SoonReaches(app, addr string, want bool) {
	d.T.Helper()
	Eventually(d.T, time.Minute, func() string {
		_, said, err := d.Get(app+".localhost", "/dial?to="+addr)
		if err == nil && (said == "reached\n") == want {
			return ""
		}
		return fmt.Sprintf("%s from %s: got %q, %v; want reached %v", addr, app, said, err, want)
	})
}
