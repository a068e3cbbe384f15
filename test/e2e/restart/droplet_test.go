package restart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestADropletIsStoredOnce wants the files of a staged droplet on the disk once: its instances start from those that its
// archive is made of. They outlive a killed daemon, and a droplet that lost bits is named, and not started, until the app is
// staged again.
func TestADropletIsStoredOnce(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	app := d.App("hello-static")
	digest := checksum(d, app)
	if _, err := os.Stat(filepath.Join(d.Dir, "blobs", digest[:2], digest)); err == nil {
		t.Error("the droplet is a blob, too")
	}
	d.Kill()
	d.Start()
	d.Running("hello-static", "web", 1)
	if got := downloaded(d, app); got != digest {
		t.Errorf("the download has the SHA-256 %s; want %s", got, digest)
	}
	page := keptFile(d, digest, "app/public/index.html")
	d.API("POST", "/v3/apps/"+app+"/actions/stop", nil, nil)
	if err := os.WriteFile(page, []byte("other bits"), 0); err != nil {
		t.Fatal(err)
	}
	d.Kill() // the next daemon has not read it
	d.Start()
	d.API("POST", "/v3/apps/"+app+"/actions/start", nil, nil)
	e2e.Eventually(t, time.Minute, func() string {
		if !strings.Contains(d.Log.String(), digest+": stored file is damaged") {
			return "the log does not name the damaged droplet"
		}
		return ""
	})
	d.API("POST", "/v3/apps/"+app+"/actions/stop", nil, nil)
	restage(d, app)
	d.API("POST", "/v3/apps/"+app+"/actions/start", nil, nil)
	d.Running("hello-static", "web", 1)
}

// restage stages the app's package again, and gives the app the droplet.
func restage(d *e2e.Daemon, app string) {
	d.T.Helper()
	var build struct{ GUID string }
	d.API("POST", "/v3/builds", e2e.Doc{"package": e2e.Doc{"guid": d.First("/v3/apps/" + app + "/packages")}}, &build)
	built := d.Built(d.T.(*testing.T), build.GUID)
	d.API("PATCH", "/v3/apps/"+app+"/relationships/current_droplet", e2e.ToOne(built.Droplet.GUID), nil)
}

// checksum is that of an app's droplet.
func checksum(d *e2e.Daemon, app string) string {
	var droplet struct{ Checksum struct{ Value string } }
	d.API("GET", "/v3/apps/"+app+"/droplets/current", nil, &droplet)
	return droplet.Checksum.Value
}

// downloaded is the digest of what a client gets of an app's droplet.
func downloaded(d *e2e.Daemon, app string) string {
	d.T.Helper()
	var droplet struct{ GUID string }
	d.API("GET", "/v3/apps/"+app+"/droplets/current", nil, &droplet)
	body, err := d.Client().Download(context.Background(), "/v3/droplets/"+droplet.GUID+"/download")
	if err != nil {
		d.T.Fatal(err)
	}
	defer body.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, body); err != nil {
		d.T.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// keptFile is a file of a droplet on the disk.
func keptFile(d *e2e.Daemon, digest, name string) string {
	d.T.Helper()
	found, err := filepath.Glob(filepath.Join(d.Dir, "rootfs", "layers", digest+"-*", "fs", "home", "vcap", name))
	if err != nil || len(found) != 1 {
		d.T.Fatalf("got %v, %v; want one file", found, err)
	}
	return found[0]
}
