package push

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/test/e2e"
)

// TestHostileBuildpacks uploads archives made to do harm as a buildpack. Like
// Cloud Controller the daemon accepts any zip, and the staging that uses it
// fails: with words that name the fault, without a file outside of its container,
// and without more memory than another upload takes. An archive that does no harm
// in a container fails there, since its bin/compile is not a program.
func TestHostileBuildpacks(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	var made struct{ GUID string }
	d.API("POST", "/v3/buildpacks", e2e.Doc{"name": "hostile"}, &made)
	for _, c := range hostileZips() {
		t.Run(c.name, func(t *testing.T) {
			d := d.On(t)
			before := lasting(files(d))
			forgetPeak(d)
			if status, text := d.SendBits("/v3/buildpacks/"+made.GUID, "bp.zip", "", c.write); status != 202 {
				t.Fatalf("got %d %s; want 202", status, text)
			}
			out, err := pushFile(t, d, "hostile", "index.html", "hostile")
			if err == nil || !strings.Contains(out, "Copying hostile into the container failed: ") && !strings.Contains(out, "BuildpackCompileFailed") {
				t.Errorf("push: got %v; want a failed staging, and why\n%s", err, out)
			}
			if peak := peak(d); peak > maxPeak {
				t.Errorf("the daemon took %d MiB", peak>>20)
			}
			if diff := cmp.Diff(before, lasting(files(d))); diff != "" {
				t.Errorf("files (-before +after):\n%s", diff)
			}
		})
	}
}

// lasting leaves out what comes with stagings and with time: blobs, logs, metrics and parts of
// containers.
func lasting(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc([]string{"/blobs/", "/cell/", "/logs/", "/metrics/", "/rootfs/run/", "/rootfs/templates/"}, func(dir string) bool { return strings.HasPrefix(name, dir) })
	})
}
