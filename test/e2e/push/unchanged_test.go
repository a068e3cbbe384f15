package push

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/test/e2e"
)

// A push that changes nothing is not staged; one after a new version of the buildpack is,
// and so are all with --stage-unchanged.
func TestUnchangedPush(t *testing.T) {
	t.Parallel()
	const skipped = "staging is skipped"
	for _, c := range []struct {
		name  string
		flags []string
		want  bool // the second push is skipped
	}{{"default", nil, true}, {"all", []string{"--stage-unchanged"}, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := e2e.StartDaemon(t, e2e.NeedBinary(t), c.flags...)
			supplies := map[string]string{"bin/supply": quiet, "bin/compile": quiet, "bin/release": releases}
			d.AddBuildpack("mine", supplies)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "readme"), []byte("of no buildpack"), 0o600); err != nil {
				t.Fatal(err)
			}
			e2e.WriteManifest(t, dir, e2e.Doc{"name": "same", "memory": "64M", "disk_quota": "128M", "stack": "minifs", "no-route": true, "health-check-type": "process", "buildpacks": []string{"mine"}})
			push := func() string {
				t.Helper()
				out, err := d.Run("push", dir)
				if err != nil {
					t.Fatalf("push: %v\n%s", err, out)
				}
				return out
			}
			if out := push(); strings.Contains(out, skipped) {
				t.Errorf("the first push was not staged:\n%s", out)
			}
			first := currentDroplet(d, "same")
			if out := push(); strings.Contains(out, skipped) != c.want {
				t.Errorf("the second push: staged %t; want %t:\n%s", c.want, !c.want, out)
			}
			if second := currentDroplet(d, "same"); second.GUID == first.GUID || c.want && second.Checksum.Value != first.Checksum.Value {
				t.Errorf("got droplet %+v after %+v; want another, with the same bits if it was not staged", second, first)
			}
			d.Running("same", "web", 1)
			if damaged := currentDroplet(d, "same"); c.want {
				damage(t, d, damaged.Checksum.Value)
				if out := push(); !strings.Contains(out, "Nothing changed since droplet "+damaged.GUID+", but its files are damaged: it is staged again") {
					t.Errorf("a push whose droplet is damaged was not staged:\n%s", out)
				}
				d.Running("same", "web", 1)
			}
			supplies["bin/supply"] = quiet + "# another version\n"
			d.SendBuildpack(d.First("/v3/buildpacks?names=mine"), "mine", supplies)
			if out := push(); strings.Contains(out, skipped) {
				t.Errorf("a push with another version of the buildpack was not staged:\n%s", out)
			}
		})
	}
}

// damage changes a file of a droplet, as a disk does that loses bits.
func damage(t *testing.T, d *e2e.Daemon, digest string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.Dir, "rootfs", "layers", digest+"-*", "fs", "home", "vcap", "app", "readme"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got the files %v, %v; want one", files, err)
	}
	if err := os.WriteFile(files[0], []byte("of no buildpacK"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// droplet is what the API shows of one.
type droplet struct {
	GUID     string
	Checksum struct{ Value string }
}

func currentDroplet(d *e2e.Daemon, app string) (current droplet) {
	d.T.Helper()
	d.API("GET", "/v3/apps/"+d.App(app)+"/droplets/current", nil, &current)
	return current
}
