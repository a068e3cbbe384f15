package backup

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/server/admin/repository/storagetest"
	"cupola/test/e2e"
)

// offsite is where a daemon puts its backups, and what opens them.
type offsite struct {
	binary, key string
	flags       []string
}

func newOffsite(t *testing.T, to ...string) *offsite {
	t.Helper()
	o := &offsite{binary: e2e.NeedBinary(t), key: filepath.Join(t.TempDir(), "key")}
	out, err := exec.Command(o.binary, "backups", "key", o.key).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, recipient, _ := strings.Cut(string(out), "--backup-recipient ")
	o.flags = []string{"--backup-recipient", strings.TrimSpace(recipient), "--backup-every", "1000h"}
	for _, address := range to {
		o.flags = append(o.flags, "--backup-to", address)
	}
	return o
}

// command runs a command about the daemon's backups.
func command(t *testing.T, d *e2e.Daemon, args ...string) string {
	t.Helper()
	out, err := exec.Command(d.Binary, append([]string{"backups"}, append(args, "--data-dir", d.Dir)...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("cupola backups %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestBackupsAwayFromTheMachine has an app backed up to a directory, an SFTP server and
// an object store, and brings it back from each of those on an empty machine, by the key
// alone. A storage that goes away is said, and is caught up with once it is back.
func TestBackupsAwayFromTheMachine(t *testing.T) {
	t.Parallel()
	sftp, s3, dir := storagetest.SFTP(t, t.TempDir()), storagetest.S3(t), t.TempDir()
	o := newOffsite(t, dir, sftp.Address, s3.Address)
	d := e2e.StartDaemon(t, o.binary, o.flags...)
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	if out := command(t, d, "run"); strings.Count(out, " ok\n") != 3 {
		t.Fatalf("got\n%s\nwant three that are ok", out)
	}
	s3.Stop()
	if out, err := exec.Command(d.Binary, "backups", "run", "--data-dir", d.Dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "s3://") {
		t.Errorf("with an object store that is gone: %v\n%s", err, out)
	}
	if out := command(t, d, "status"); strings.Count(out, "failed at") != 1 {
		t.Errorf("got\n%s\nwant one that failed", out)
	}
	s3.Start()
	if out := command(t, d, "run"); strings.Count(out, " ok\n") != 3 {
		t.Errorf("got\n%s\nwant three that are ok", out)
	}
	d.Kill()
	for _, from := range []string{dir, sftp.Address, s3.Address} {
		t.Run(from[:4], func(t *testing.T) {
			e := elsewhere(d, t)
			if out := command(t, e, "verify", "--from", from); !strings.Contains(out, "as they were written") {
				t.Error(out)
			}
			if out := command(t, e, "restore", "latest", "--from", from, "--identity", o.key); !strings.Contains(out, "Start the daemon and its apps with") {
				t.Error(out)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(e.Dir), ".*")); len(left) > 0 {
				t.Errorf("left %v", left)
			}
			if from == dir { // the other two hold the same bytes, which the restore verified
				t.Cleanup(e.Destroy)
				e.Start()
				e.Running("hello-static", "web", 1)
			}
		})
	}
}

// TestABackupThatIsKilledIsContinued kills the daemon while it sends 60 MB, and expects
// that its successor sends the rest, without being asked.
func TestABackupThatIsKilledIsContinued(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := newOffsite(t, dir)
	d := e2e.StartDaemon(t, o.binary, append(o.flags, "--backup-rate", "20")...)
	e2e.Eventually(t, time.Minute, func() string { return files(dir, "snapshots/*", 1) }) // the first, of an empty daemon
	keepNoise(d, 60<<20)
	run := exec.Command(d.Binary, "backups", "run", "--data-dir", d.Dir)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, time.Minute, func() string { return files(dir, "chunks/*/*", 12) })
	d.Kill()
	_ = run.Wait()
	sent, _ := filepath.Glob(filepath.Join(dir, "chunks/*/*"))
	if files(dir, "snapshots/*", 2) == "" {
		t.Fatal("the backup was made before the daemon was killed: nothing was tried")
	}
	d.Start()
	command(t, d, "run")
	var all []struct{ Last struct{ Size, Added int64 } }
	text, err := os.ReadFile(filepath.Join(d.Dir, "db/offsite.json"))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) != 1 || all[0].Last.Added > all[0].Last.Size-int64(len(sent)-3)*128<<10 {
		t.Errorf("after %d chunks were sent: %+v (%v)", len(sent), all, err)
	}
	if out := command(t, d, "verify"); !strings.Contains(out, "as they were written") {
		t.Error(out)
	}
}

// files is "" if so many files are there.
func files(dir, pattern string, want int) string {
	found, _ := filepath.Glob(filepath.Join(dir, pattern))
	if len(found) >= want {
		return ""
	}
	return fmt.Sprintf("%d of %s", len(found), pattern)
}
