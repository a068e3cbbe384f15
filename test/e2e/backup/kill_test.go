package backup

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestABackupOfAKilledDaemonEnds kills the daemon at several moments of a backup
// of 60 MB. The command ends at once, says why, and leaves no file.
func TestABackupOfAKilledDaemonEnds(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	keepNoise(d, 60<<20)
	cut := 0
	const whileSending = 3 * time.Second // the command is stopped, so that the daemon waits with most of the backup
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 80 * time.Millisecond, 150 * time.Millisecond, whileSending} {
		dir := t.TempDir()
		cmd := exec.Command(d.Binary, "backup", "--data-dir", d.Dir, filepath.Join(dir, "all.backup"))
		created := e2e.Created(t, d.Dir)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !created("backup-", time.Minute) {
			t.Fatalf("no backup is gathered:\n%s", &said)
		}
		if after == whileSending {
			signalTo(t, cmd, syscall.SIGSTOP)
		}
		<-time.After(after)
		d.Kill()
		if after == whileSending {
			signalTo(t, cmd, syscall.SIGCONT)
		}
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
			} else if out, err := exec.Command(d.Binary, "verify", filepath.Join(dir, "all.backup")).CombinedOutput(); err != nil {
				t.Errorf("after %v: the command succeeded, and its file is no backup: %v\n%s", after, err, out)
			}
		case <-time.After(time.Minute):
			cmd.Process.Kill()
			t.Errorf("after %v: the command hangs:\n%s", after, &said)
		}
		d.Start()
		if left, _ := filepath.Glob(filepath.Join(d.Dir, "backup-*")); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
	if cut == 0 {
		t.Error("no backup was cut off: nothing was tried")
	}
}

func signalTo(t *testing.T, cmd *exec.Cmd, sig syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// keepNoise uploads a package that cannot be compressed.
func keepNoise(d *e2e.Daemon, size int64) {
	d.T.Helper()
	keepNoiseAs(d, "noise", size)
}

// keepNoiseAs is keepNoise with the name of the app that has the package.
func keepNoiseAs(d *e2e.Daemon, name string, size int64) {
	d.T.Helper()
	var space, made struct {
		Resources []struct{ GUID string }
		GUID      string
	}
	d.API("GET", "/v3/spaces", nil, &space)
	d.API("POST", "/v3/apps", e2e.Doc{"name": name, "relationships": e2e.Doc{"space": e2e.Doc{"data": e2e.Doc{"guid": space.Resources[0].GUID}}}}, &made)
	d.API("POST", "/v3/packages", e2e.Doc{"type": "bits", "relationships": e2e.Doc{"app": e2e.Doc{"data": e2e.Doc{"guid": made.GUID}}}}, &made)
	status, text := d.SendBits("/v3/packages/"+made.GUID, "noise.zip", "", func(w io.Writer) error {
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
		d.T.Fatalf("got %d %s", status, text)
	}
}
