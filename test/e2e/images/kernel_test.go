package images

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// TestAnotherKernelSinceStaging has an app on an image, and then another kernel: in its droplet's row, since a test cannot boot
// another. RFC-0046: a notice SHOULD be propagated "on every stemcell major update … that informs of a major
// linux kernel update." The daemon's log, the app's log, doctor and the next staging tell.
func TestAnotherKernelSinceStaging(t *testing.T) {
	t.Parallel()
	r := e2e.StartRegistry(t)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	r.Push(t, "1", v1.Config{}, e2e.SmallStack(t, "one"))
	d.Flag("diego_custom_stacks", true)
	dir := imageApp{"on-image", "docker://" + r.Host + "/stacks/small:1", serveBuildpack(t)}.dir(t, credentialsOf(r))
	if out, err := d.Run("push", dir); err != nil || !strings.Contains(out, "Its programs run on this machine's Linux ") || strings.Contains(out, "staged last on Linux") {
		t.Fatalf("push: %v; want this machine's kernel named, and none compared\n%s", err, out)
	}
	const notice = "staged with another major version of Linux"
	doctor := func() string {
		out, _ := d.Run("doctor", "--data-dir", d.Dir) // it fails for what a machine of tests lacks
		return out
	}
	if out := doctor(); strings.Contains(out, notice) {
		t.Errorf("doctor, with the same kernel:\n%s", out)
	}
	d.Kill()
	rewriteKernel(t, d, "2.6.32-754.el6")
	d.Start()
	e2e.Eventually(t, time.Minute, func() string {
		lines := apiLines(d, "on-image")
		if strings.Contains(lines, "WARNING: the app was staged on Linux 2.6.32-754.el6, and this machine has Linux ") {
			return ""
		}
		return "the app's log does not tell:\n" + lines
	})
	if log := d.Log.String(); !strings.Contains(log, notice) || !strings.Contains(log, "cupola/dev/on-image") {
		t.Errorf("the daemon's log does not tell:\n%s", log)
	}
	if out := doctor(); !strings.Contains(out, notice+": cupola/dev/on-image (Linux 2.6.32-754.el6)") || !strings.Contains(out, "cf restage APP") {
		t.Errorf("doctor:\n%s", out)
	}
	if out, err := d.Run("push", dir); err != nil || !strings.Contains(out, "WARNING: the app was staged last on Linux 2.6.32-754.el6") {
		t.Errorf("push again: %v\n%s", err, out)
	}
	if out := doctor(); strings.Contains(out, notice) {
		t.Errorf("doctor, after another staging:\n%s", out)
	}
}

// apiLines are the lines of an app's log of the source API.
func apiLines(d *e2e.Daemon, app string) (lines string) {
	var read struct {
		Envelopes struct {
			Batch []struct {
				Tags map[string]string
				Log  struct{ Payload []byte }
			}
		}
	}
	d.API("GET", "/api/v1/read/"+d.App(app)+"?envelope_types=LOG&limit=1000&start_time=0", nil, &read)
	for _, e := range read.Envelopes.Batch {
		if e.Tags["source_type"] == "API" {
			lines += string(e.Log.Payload) + "\n"
		}
	}
	return lines
}

// rewriteKernel changes with which kernel droplets were staged, while no daemon runs.
func rewriteKernel(t *testing.T, d *e2e.Daemon, release string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(d.Dir, "db/cupola.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	changed, err := db.Exec(`UPDATE droplets SET lifecycle = CAST(json_set(lifecycle, '$.Image.Kernel', ?) AS TEXT) WHERE json_extract(lifecycle, '$.Image.Kernel') IS NOT NULL`, release)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := changed.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("changed %d droplets, %v; want the one that names a kernel", n, err)
	}
}
