package backup

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cupola/server/admin/repository/storagetest"
	"cupola/test/e2e"
	"cupola/test/loopback"
)

// created is an app that was created, and when that was acknowledged.
type created struct {
	name string
	at   time.Time
}

// createApps creates apps one after another until stop, at least one.
func createApps(d *e2e.Daemon, prefix string, stop <-chan time.Time) (all []created) {
	d.T.Helper()
	space := d.First("/v3/spaces?names=dev")
	for n := 0; ; n++ {
		name := fmt.Sprint(prefix, n)
		d.API("POST", "/v3/apps", e2e.Doc{"name": name, "relationships": e2e.Doc{"space": e2e.ToOne(space)}}, nil)
		all = append(all, created{name, time.Now()})
		select {
		case <-stop:
			return all
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// missing are the apps that are not there.
func missing(d *e2e.Daemon, all []created) (lost []string) {
	d.T.Helper()
	for _, a := range all {
		var list struct{ Resources []any }
		d.API("GET", "/v3/apps?names="+a.name, nil, &list)
		if len(list.Resources) == 0 {
			lost = append(lost, a.name)
		}
	}
	return lost
}

// TestChangesReachTheBackup creates apps one after another, kills the daemon in the middle and
// deletes its data directory. What was acknowledged more than the interval before is restored,
// from a directory, and from an object store and an SFTP server that were gone for a while, with the bits of an app
// that was pushed since the backup.
func TestChangesReachTheBackup(t *testing.T) {
	t.Parallel()
	const every = 2 * time.Second
	s3, sftp, dir := storagetest.S3(t), storagetest.SFTP(t, t.TempDir()), t.TempDir()
	o := newOffsite(t, dir, s3.Address, sftp.Address)
	at := fmt.Sprintf("127.0.0.1:%d", loopback.FreePorts(t, 1)[0])
	d := e2e.StartDaemon(t, o.binary, append(o.flags, "--backup-changes-every", every.String(), "--metrics", at)...)
	statusHas(t, d, 3, " ok\n")
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	s3.Stop()
	sftp.Stop()
	first := createApps(d, "a", time.After(2*every))
	statusHas(t, d, 2, "changes are not sent")
	for _, gone := range []string{s3.Address, sftp.Address} {
		if behind := metric(t, at, fmt.Sprintf("cupola_backup_behind_seconds{environment=%q,to=%q}", "localhost", gone)); behind < every.Seconds() {
			t.Errorf("%s is gone, and %v s behind", gone, behind)
		}
	}
	s3.Start()
	sftp.Start()
	statusHas(t, d, 3, " ok\n")
	middle := time.Now().UTC()
	time.Sleep(2 * time.Second) // parts are named by the second
	all := append(first, createApps(d, "b", time.After(5*every))...)
	d.Kill()
	killed := time.Now()
	if err := os.RemoveAll(filepath.Join(d.Dir, "db")); err != nil {
		t.Fatal(err)
	}
	var due []created
	for _, a := range all {
		if killed.Sub(a.at) > every+3*time.Second { // which making and sending a part may take
			due = append(due, a)
		}
	}
	for _, from := range []string{dir, s3.Address, sftp.Address} {
		t.Run(from[:3], func(t *testing.T) {
			e := elsewhere(d, t)
			if out := command(t, e, "verify", "--from", from); !strings.Contains(out, "as they were written") {
				t.Error(out)
			}
			out := command(t, e, "restore", "latest", "--from", from, "--identity", o.key)
			if !strings.Contains(out, "with what changed until") {
				t.Error(out)
			}
			t.Cleanup(e.Destroy)
			e.Start()
			if lost := missing(e, due); len(lost) > 0 {
				t.Errorf("%d of %d apps are lost: %v", len(lost), len(due), lost)
			}
			e.Running("hello-static", "web", 1)
			e.Kill()
		})
	}
	t.Run("to", func(t *testing.T) {
		e := elsewhere(d, t)
		damageLastPart(t, dir)
		if out := command(t, e, "restore", "latest", "--from", dir, "--identity", o.key, "--to", middle.Format(time.RFC3339)); strings.Contains(out, "left out") {
			t.Error(out)
		}
		t.Cleanup(e.Destroy)
		e.Start()
		if lost := missing(e, first); len(lost) > 0 {
			t.Errorf("%v are lost", lost)
		}
		if lost := missing(e, all[len(first):]); len(lost) != len(all)-len(first) {
			t.Errorf("%d of %d are not there, which were created later", len(lost), len(all)-len(first))
		}
	})
	t.Run("damaged", func(t *testing.T) {
		e := elsewhere(d, t)
		if out, err := exec.Command(e.Binary, "backups", "verify", "--from", dir).CombinedOutput(); err == nil || !strings.Contains(string(out), " is damaged: ") {
			t.Errorf("verify: %v\n%s", err, out)
		}
		if out := command(t, e, "restore", "latest", "--from", dir, "--identity", o.key); !strings.Contains(out, "left out") || !strings.Contains(out, "with what changed until") {
			t.Error(out)
		}
	})
}

// statusHas waits until the status of the backups has a text so many times.
func statusHas(t *testing.T, d *e2e.Daemon, count int, text string) {
	t.Helper()
	e2e.Eventually(t, time.Minute, func() string {
		if out := command(t, d, "status"); strings.Count(out, text) != count {
			return out
		}
		return ""
	})
}

// metric is the value of a sample.
func metric(t *testing.T, at, name string) float64 {
	t.Helper()
	res, err := http.Get("http://" + at + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	_, after, found := strings.Cut(string(text), name+" ")
	value, perr := strconv.ParseFloat(strings.SplitN(after, "\n", 2)[0], 64)
	if err := errors.Join(err, perr); err != nil || !found {
		t.Fatalf("the metrics have no %s: %v", name, err)
	}
	return value
}

// damageLastPart cuts off what the newest part names first.
func damageLastPart(t *testing.T, dir string) {
	t.Helper()
	parts, _ := filepath.Glob(filepath.Join(dir, "journal/*/snapshots/*.json"))
	if len(parts) == 0 {
		t.Fatal("there are no parts")
	}
	text, err := os.ReadFile(parts[len(parts)-1])
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(string(text), `"ID":"`)
	chunks, _ := filepath.Glob(filepath.Join(dir, "journal/*/chunks/*", id[:64]+".*"))
	if len(chunks) != 1 {
		t.Fatalf("the chunk %.64s is in %v", id, chunks)
	}
	if err := os.Truncate(chunks[0], 10); err != nil {
		t.Fatal(err)
	}
}

// TestAPartThatIsKilledIsContinued kills the daemon while it sends a part with 40 MB, to a directory and to an SFTP server,
// which goes away in the middle before that: the parts before it are restored, and its successor sends the rest.
func TestAPartThatIsKilledIsContinued(t *testing.T) {
	t.Parallel()
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		killPart(t, dir, dir, nil)
	})
	t.Run("sftp", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		server := storagetest.SFTP(t, dir)
		killPart(t, dir, server.Address, server)
	})
}

// killPart kills a daemon while it sends a part to an address, whose files are in dir. The server, if there is one, goes
// away before that.
func killPart(t *testing.T, dir, to string, server *storagetest.Server) {
	o := newOffsite(t, to)
	d := e2e.StartDaemon(t, o.binary, append(o.flags, "--backup-rate", "5", "--backup-changes-every", "1s")...)
	e2e.Eventually(t, time.Minute, func() string { return files(dir, "snapshots/*", 1) })
	early := createApps(d, "early", time.After(time.Second))
	sent, _ := filepath.Glob(filepath.Join(dir, "journal/*/snapshots/*.json"))
	e2e.Eventually(t, time.Minute, func() string { return files(dir, "journal/*/snapshots/*.json", len(sent)+1) })
	keepNoise(d, 40<<20)
	chunks, _ := filepath.Glob(filepath.Join(dir, "journal/*/chunks/*/*"))
	e2e.Eventually(t, time.Minute, func() string { return files(dir, "journal/*/chunks/*/*", len(chunks)+6) })
	if server != nil {
		server.Stop()
		statusHas(t, d, 1, "changes are not sent")
		server.Start()
		e2e.Eventually(t, time.Minute, func() string { return files(dir, "journal/*/chunks/*/*", len(chunks)+14) })
	}
	d.Kill()
	t.Run("before", func(t *testing.T) {
		e := elsewhere(d, t)
		if out := command(t, e, "restore", "latest", "--from", to, "--identity", o.key); !strings.Contains(out, "with what changed until") || strings.Contains(out, "left out") {
			t.Error(out)
		}
		t.Cleanup(e.Destroy)
		e.Start()
		if lost := missing(e, early[:1]); len(lost) > 0 {
			t.Errorf("%v are lost", lost)
		}
		if blobs, _ := filepath.Glob(filepath.Join(e.Dir, "blobs/*/*")); sizes(blobs) > 40<<20 {
			t.Fatal("the part was sent before the daemon was killed: nothing was tried")
		}
	})
	d.Start()
	e2e.Eventually(t, 2*time.Minute, func() string {
		e := elsewhere(d, t)
		command(t, e, "restore", "latest", "--from", to, "--identity", o.key)
		if blobs, _ := filepath.Glob(filepath.Join(e.Dir, "blobs/*/*")); sizes(blobs) < 40<<20 {
			return "the package is not restored"
		}
		return ""
	})
	if out := command(t, d, "verify"); !strings.Contains(out, "as they were written") {
		t.Error(out)
	}
	e2e.Eventually(t, time.Minute, func() string {
		if files(dir, "journal/*/chunks/*/*.half", 1) == "" {
			return "what the killed part left half-written is still there"
		}
		return ""
	})
}

// sizes is what files have together.
func sizes(files []string) (sum int64) {
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
