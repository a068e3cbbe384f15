package main

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestABackupOfAKilledDaemonEnds kills the daemon at several moments of a backup
// of 60 MB. The command ends at once, says why, and leaves no file.
func TestABackupOfAKilledDaemonEnds(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	d.keepNoise(60 << 20)
	cut := 0
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 80 * time.Millisecond, 150 * time.Millisecond} {
		dir := t.TempDir()
		cmd := exec.Command(d.binary, "backup", "--data-dir", d.dir, filepath.Join(dir, "all.backup"))
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, 20*time.Second, func() string {
			if found, _ := filepath.Glob(filepath.Join(d.dir, "backup-*")); len(found) == 0 {
				return "no backup is gathered"
			}
			return ""
		})
		<-time.After(after)
		d.kill()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			left, _ := os.ReadDir(dir)
			if err != nil && (!strings.Contains(said.String(), "the daemon ended") || len(left) > 0) {
				t.Errorf("after %v: got %v, left %v\n%s; want that the daemon ended, and no file", after, err, left, &said)
			}
			if err != nil {
				cut++
			}
		case <-time.After(20 * time.Second):
			cmd.Process.Kill()
			t.Errorf("after %v: the command hangs:\n%s", after, &said)
		}
		d.start()
		if left, _ := filepath.Glob(filepath.Join(d.dir, "backup-*")); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
	if cut == 0 {
		t.Error("no backup was cut off: nothing was tried")
	}
}

// keepNoise uploads a package that cannot be compressed.
func (d *daemon) keepNoise(size int64) {
	d.t.Helper()
	var space, made struct {
		Resources []struct{ GUID string }
		GUID      string
	}
	d.api("GET", "/v3/spaces", nil, &space)
	d.api("POST", "/v3/apps", doc{"name": "noise", "relationships": doc{"space": doc{"data": doc{"guid": space.Resources[0].GUID}}}}, &made)
	d.api("POST", "/v3/packages", doc{"type": "bits", "relationships": doc{"app": doc{"data": doc{"guid": made.GUID}}}}, &made)
	status, text := d.sendBits(uploadTarget{path: "/v3/packages/" + made.GUID, file: "noise.zip"}, "", func(w io.Writer) error {
		z := zip.NewWriter(w)
		f, err := z.Create("noise")
		if err != nil {
			return err
		}
		if _, err := io.CopyN(f, rand.Reader, size); err != nil {
			return err
		}
		return z.Close()
	})
	if status != 200 {
		d.t.Fatalf("got %d %s", status, text)
	}
}
