package push

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

const fullDisk = "data directory's disk is full"

// TestMistakesOnAFullDisk pushes while the data directory's disk has room for less and
// less of it. Each push ends with the cause and how to mend it.
func TestMistakesOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := e2e.NewLoopDisk(t, 512<<20)
	d := disk.Start()
	push := func(name string, left int64, noApp bool) said {
		disk.FillBut(left << 20)
		m := mistake{name: name, file: "big " + noise(6<<20), manifest: onHost("exec python3 -m http.server $PORT"), noApp: noApp,
			cause: fullDisk, mend: "sk the operator to free space on it"}
		got := m.make(d)
		t.Logf("%s:\n%s", m.name, got.text())
		m.judge(t, got)
		return got
	}
	push("full-at-once", 0, true)
	push("full-upload", 4, true) // the app is made, and has nothing to say yet
	// The app has 6 MB, as have its package and its droplet. Linux 7.2 may refuse to make the package's directory in the other 3.
	staged := false
	for n := 0; n < 20 && !staged; n++ {
		staged = push("full-staging", 9, false).build != ""
	}
	if !staged {
		t.Error("the disk was not full when a droplet was kept")
	}
	disk.Free()
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Errorf("with room again: %v\n%s", err, out)
	}
	startUploaded(d, disk)
}

// startUploaded starts an uploaded droplet, which is unpacked for that, with no room to.
func startUploaded(d *e2e.Daemon, disk *e2e.LoopDisk) {
	d.T.Helper()
	const name = "full-staging"
	var droplet struct{ GUID string }
	d.API("POST", "/v3/droplets", e2e.Doc{
		"relationships": e2e.Doc{"app": e2e.Doc{"data": e2e.Doc{"guid": d.App(name)}}}, "process_types": e2e.Doc{"web": "exec python3 -m http.server $PORT"},
	}, &droplet)
	status, text := d.SendBits("/v3/droplets/"+droplet.GUID, "droplet.tgz", "", dropletOf(noise(6<<20)))
	if status != http.StatusAccepted {
		d.T.Fatalf("the upload of a droplet ended with %d: %s", status, text)
	}
	e2e.Eventually(d.T, time.Minute, func() string {
		var made struct{ State string }
		if d.API("GET", "/v3/droplets/"+droplet.GUID, nil, &made); made.State != "STAGED" {
			return "the droplet is " + made.State
		}
		return ""
	})
	d.API("PATCH", "/v3/apps/"+d.App(name)+"/relationships/current_droplet", e2e.Doc{"data": e2e.Doc{"guid": droplet.GUID}}, nil)
	disk.FillBut(3 << 20)
	d.API("POST", "/v3/apps/"+d.App(name)+"/actions/start", nil, nil)
	e2e.Eventually(d.T, time.Minute, func() string {
		if all := crashes(d, name); len(all) == 0 || !strings.Contains(details(d, name), fullDisk) {
			return fmt.Sprintf("%d crashes, %q", len(all), details(d, name))
		}
		return ""
	})
}

// dropletOf is a droplet with one file.
func dropletOf(content string) func(io.Writer) error {
	return func(w io.Writer) error {
		z := gzip.NewWriter(w)
		t := tar.NewWriter(z)
		err := t.WriteHeader(&tar.Header{Name: "app/big", Mode: 0o644, Size: int64(len(content))})
		_, errWrite := io.WriteString(t, content)
		return errors.Join(err, errWrite, t.Close(), z.Close())
	}
}
