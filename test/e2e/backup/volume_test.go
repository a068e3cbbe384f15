package backup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"cupola/server/admin/archive"
	"cupola/test/e2e"
)

// TestABackupHasVolumes backs up a daemon while a task writes to a volume, and
// restores it elsewhere: what was written before is there, without a gap. A
// backup that is killed with the daemon leaves nothing held and no file.
func TestABackupHasVolumes(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "postgres,files")
	d.PushNotes()
	v := sharedVolume(d)
	killsABackup(d, v)
	rows := writesRows(d, v)
	before := rows()
	file := filepath.Join(t.TempDir(), "all.backup")
	if out, err := d.Run("backup", "--data-dir", d.Dir, file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	after := rows()
	if out, err := d.Run("verify", file); err != nil || !strings.Contains(out, " 1 volumes, ") {
		t.Fatalf("%v\n%s", err, out)
	}
	volumeSpoiled(t, d.Binary, file)
	e := restored(d, file)
	e.Running("hello-postgres", "web", 1)
	if got := rowsIn(e, v); got < before || got > after {
		t.Errorf("got %d rows; want between %d and %d", got, before, after)
	}
	keepsItsShape(e, d, v)

	without := filepath.Join(t.TempDir(), "without.backup")
	if out, err := d.Run("backup", "--without-volumes", "--data-dir", d.Dir, without); err != nil || !strings.Contains(out, "does not contain the volumes") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := d.Run("verify", without); err != nil || !strings.Contains(out, "  volume "+v+" (of a service instance of files)") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestABackupHasDatabases backs up while notes are kept in a database, and wants
// those that were kept before in the restored one.
func TestABackupHasDatabases(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "postgres")
	d.Prepared("postgres")
	d.PushNotes()
	d.DataBinding("hello-postgres", d.DataInstance("postgres", "notes"))
	d.RestartApp("hello-postgres")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const before = 10 // notes
	var kept atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if d.Keep(fmt.Sprintf("note %d.", kept.Load())) {
				kept.Add(1)
			} else {
				<-time.After(20 * time.Millisecond)
			}
		}
	}()
	e2e.Eventually(t, 3*time.Minute, func() string {
		if n := kept.Load(); n < before {
			return fmt.Sprintf("%d notes were kept", n)
		}
		return ""
	})
	file := filepath.Join(t.TempDir(), "all.backup")
	if out, err := d.Run("backup", "--data-dir", d.Dir, file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cancel()
	<-ended
	t.Logf("%d notes in all", kept.Load())
	e := restored(d, file)
	e.Running("hello-postgres", "web", 1)
	e2e.Eventually(t, time.Minute, func() string {
		if e.Keep("the first after it was restored") {
			return ""
		}
		return "no note was kept"
	})
	_, text, err := e.Get("hello-postgres.localhost", "/")
	if err != nil {
		t.Fatal(err)
	}
	for n := range before {
		if !strings.Contains(text, fmt.Sprintf(" note %d.\n", n)) {
			t.Errorf("note %d was lost", n)
		}
	}
}

// sharedVolume makes a directory that hello-postgres is bound to, with things in
// it that a copy must keep.
func sharedVolume(d *e2e.Daemon) (name string) {
	d.T.Helper()
	name = d.DataInstance("files", "shared")
	d.DataBinding("hello-postgres", name)
	d.RestartApp("hello-postgres")
	at := inContainer(name)
	d.Tasks("mkdir -m 700 "+at+"/own && echo "+volumeMark+" > "+at+"/own/mark && ln "+at+"/own/mark "+at+"/again && ln -s own/mark "+at+"/link && "+
		"dd if=/dev/zero of="+at+"/sparse bs=1 count=1 seek=900M", "SUCCEEDED")
	return name
}

const volumeMark = "this is kept in a volume"

func inContainer(volume string) string { return "/var/vcap/data/" + volume }

// onDisk is where a volume of a daemon is, while a container has it.
func onDisk(d *e2e.Daemon, volume, name string) string {
	return filepath.Join(d.Dir, "volumes", volume, "disk", name)
}

// writesRows starts a task that writes rows as long as it runs, and returns who counts
// them.
func writesRows(d *e2e.Daemon, volume string) (count func() int) {
	d.T.Helper()
	var task struct{ GUID string }
	d.API("POST", "/v3/apps/"+d.App("hello-postgres")+"/tasks", e2e.Doc{"memory_in_mb": 32, "disk_in_mb": 64,
		"command": "i=0; while :; do i=$((i+1)); echo $i >> " + inContainer(volume) + "/rows; done"}, &task)
	e2e.Eventually(d.T, time.Minute, func() string {
		if _, err := os.Stat(onDisk(d, volume, "rows")); err != nil || rowsIn(d, volume) < 1000 {
			return "few rows were written"
		}
		return ""
	})
	return func() int { return rowsIn(d, volume) }
}

// rowsIn counts the rows of a volume, which must have no gap. The last may be
// written at the moment.
func rowsIn(d *e2e.Daemon, volume string) int {
	d.T.Helper()
	text, err := os.ReadFile(onDisk(d, volume, "rows"))
	if err != nil {
		d.T.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	lines = lines[:len(lines)-1]
	for n, l := range lines {
		if l != strconv.Itoa(n+1) {
			d.T.Fatalf("row %d is %q", n+1, l)
		}
	}
	return len(lines)
}

// killsABackup kills the daemon while it copies a volume.
func killsABackup(d *e2e.Daemon, volume string) {
	d.T.Helper()
	big := inContainer(volume) + "/big"
	d.Tasks("head -c 300000000 /dev/urandom > "+big, "SUCCEEDED")
	dir := d.T.TempDir()
	cmd := exec.Command(d.Binary, "backup", "--data-dir", d.Dir, filepath.Join(dir, "all.backup"))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		d.T.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(holders(d)) == 0; {
		if time.Now().After(deadline) {
			d.T.Fatalf("no process holds the volume:\n%s", &said)
		}
	}
	for deadline := time.Now().Add(time.Minute); !gathers(d, volume); {
		if time.Now().After(deadline) {
			d.T.Fatalf("the volume is not copied:\n%s", &said)
		}
	}
	d.Kill()
	if err := cmd.Wait(); err == nil {
		d.T.Errorf("the backup was done before the daemon was killed:\n%s", &said)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(onDisk(d, volume, "after"), nil, 0o600) }()
	select {
	case err := <-wrote:
		if err != nil {
			d.T.Error(err)
		}
	case <-time.After(time.Minute):
		d.T.Error("the volume is still held")
	}
	e2e.Eventually(d.T, time.Minute, func() string {
		if left := holders(d); len(left) > 0 {
			return fmt.Sprintf("%v hold a volume", left)
		}
		return ""
	})
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		d.T.Errorf("the command left %v", left)
	}
	d.Start()
	if left, _ := filepath.Glob(filepath.Join(d.Dir, "backup-*")); len(left) > 0 {
		d.T.Errorf("left %v", left)
	}
	d.Tasks("rm "+big, "SUCCEEDED")
}

// gathers reports whether some of a volume's copy is there.
func gathers(d *e2e.Daemon, volume string) bool {
	found, err := filepath.Glob(filepath.Join(d.Dir, "backup-*", archive.TreesDir, volume+".tar"))
	if err != nil || len(found) == 0 {
		return false
	}
	info, err := os.Stat(found[0])
	return err == nil && info.Size() > 0
}

// holders are the processes that hold a volume of this daemon's.
func holders(d *e2e.Daemon) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		line, err := os.ReadFile(name)
		if err == nil && bytes.Contains(line, []byte("hold-volume")) && bytes.Contains(line, []byte(d.Dir)) {
			pids = append(pids, strings.Split(name, "/")[2])
		}
	}
	return pids
}

// restored is a daemon that runs what a backup holds.
func restored(d *e2e.Daemon, file string) *e2e.Daemon {
	d.T.Helper()
	e := elsewhere(d, d.T.(*testing.T))
	e.Flags = d.Flags
	if out, err := exec.Command(d.Binary, "restore", "--data-dir", e.Dir, file).CombinedOutput(); err != nil {
		d.T.Fatalf("%v\n%s", err, out)
	}
	d.T.Cleanup(e.Destroy)
	if mounts, err := os.ReadFile("/proc/mounts"); err != nil || strings.Contains(string(mounts), filepath.Dir(e.Dir)) {
		d.T.Errorf("the restore left something mounted, %v", err)
	}
	e.Start()
	return e
}

// keepsItsShape compares a volume with the one it was copied from.
func keepsItsShape(d *e2e.Daemon, first *e2e.Daemon, volume string) {
	d.T.Helper()
	for _, name := range []string{"own", "own/mark", "again", "sparse", "."} {
		var got, want syscall.Stat_t
		if err := syscall.Lstat(onDisk(d, volume, name), &got); err != nil {
			d.T.Fatal(err)
		}
		if err := syscall.Lstat(onDisk(first, volume, name), &want); err != nil {
			d.T.Fatal(err)
		}
		if got.Mode != want.Mode || got.Uid != want.Uid || got.Gid != want.Gid || got.Nlink != want.Nlink || name == "sparse" && (got.Size != want.Size || got.Blocks > 1024) {
			d.T.Errorf("%s: got %+v; want %+v", name, got, want)
		}
	}
	if text, err := os.ReadFile(onDisk(d, volume, "link")); err != nil || string(text) != volumeMark+"\n" {
		d.T.Errorf("got %q, %v", text, err)
	}
	var got, want syscall.Statfs_t
	if err := syscall.Statfs(onDisk(d, volume, ""), &got); err != nil {
		d.T.Fatal(err)
	}
	if err := syscall.Statfs(onDisk(first, volume, ""), &want); err != nil {
		d.T.Fatal(err)
	}
	if got.Blocks != want.Blocks || got.Files != want.Files {
		d.T.Errorf("it holds %d blocks and %d files; want %d and %d", got.Blocks, got.Files, want.Blocks, want.Files)
	}
}

// volumeSpoiled changes a byte of what a volume holds, in a backup that is
// otherwise sound: verify and restore refuse it.
func volumeSpoiled(t *testing.T, binary, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(plain, []byte(volumeMark))
	if at < 0 {
		t.Fatal("the backup has nothing of the volume")
	}
	plain[at] ^= 1
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.backup")
	out, err := os.Create(bad)
	if err != nil {
		t.Fatal(err)
	}
	w, err := archive.Compress(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{func() error { _, err := w.Write(plain); return err }, w.Close, out.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"verify", bad}, {"restore", "--data-dir", filepath.Join(dir, "data"), bad}} {
		if out, err := exec.Command(binary, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "the backup is damaged: "+archive.TreesDir+"/") {
			t.Errorf("%s: got %v\n%s", args[0], err, out)
		}
	}
}
