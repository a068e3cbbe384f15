package main

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

	"cupola/server"
	"cupola/server/backup"
)

// TestABackupHasVolumes backs up a daemon while a task writes to a volume, and
// restores it elsewhere: what was written before is there, without a gap. A
// backup that is killed with the daemon leaves nothing held and no file.
func TestABackupHasVolumes(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t), "--data-services", "postgres,files")
	d.pushNotes()
	v := d.sharedVolume()
	d.killsABackup(v)
	rows := d.writesRows(v)
	before := rows()
	file := filepath.Join(t.TempDir(), "all.backup")
	if out, err := d.run("backup", "--data-dir", d.dir, file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	after := rows()
	if out, err := d.run("verify", file); err != nil || !strings.Contains(out, " 1 volumes, ") {
		t.Fatalf("%v\n%s", err, out)
	}
	volumeSpoiled(t, d.binary, file)
	e := d.restored(file)
	e.running("hello-postgres", "web", 1)
	if got := e.rowsIn(v); got < before || got > after {
		t.Errorf("got %d rows; want between %d and %d", got, before, after)
	}
	e.keepsItsShape(d, v)

	without := filepath.Join(t.TempDir(), "without.backup")
	if out, err := d.run("backup", "--without-volumes", "--data-dir", d.dir, without); err != nil || !strings.Contains(out, "does not contain the volumes") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := d.run("verify", without); err != nil || !strings.Contains(out, "  volume "+v+" (of a service instance of files)") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestABackupHasDatabases backs up while notes are kept in a database, and wants
// those that were kept before in the restored one.
func TestABackupHasDatabases(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t), "--data-services", "postgres")
	d.prepared()
	d.pushNotes()
	d.dataBinding("hello-postgres", d.dataInstance("postgres", "notes"))
	d.restartApp("hello-postgres")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const before = 10 // notes
	var kept atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if d.keep(fmt.Sprintf("note %d.", kept.Load())) {
				kept.Add(1)
			} else {
				<-time.After(20 * time.Millisecond)
			}
		}
	}()
	eventually(t, 3*time.Minute, func() string {
		if n := kept.Load(); n < before {
			return fmt.Sprintf("%d notes were kept", n)
		}
		return ""
	})
	file := filepath.Join(t.TempDir(), "all.backup")
	if out, err := d.run("backup", "--data-dir", d.dir, file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cancel()
	<-ended
	t.Logf("%d notes in all", kept.Load())
	e := d.restored(file)
	e.running("hello-postgres", "web", 1)
	eventually(t, time.Minute, func() string {
		if e.keep("the first after it was restored") {
			return ""
		}
		return "no note was kept"
	})
	_, text, err := e.get("hello-postgres.localhost", "/")
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
func (d *daemon) sharedVolume() (name string) {
	d.t.Helper()
	name = d.dataInstance("files", "shared")
	d.dataBinding("hello-postgres", name)
	d.restartApp("hello-postgres")
	at := inContainer(name)
	d.tasks("mkdir -m 700 "+at+"/own && echo "+volumeMark+" > "+at+"/own/mark && ln "+at+"/own/mark "+at+"/again && ln -s own/mark "+at+"/link && "+
		"dd if=/dev/zero of="+at+"/sparse bs=1 count=1 seek=900M", "SUCCEEDED")
	return name
}

const volumeMark = "this is kept in a volume"

func inContainer(volume string) string { return "/var/vcap/data/" + volume }

// onDisk is where a volume of a daemon is, while a container has it.
func (d *daemon) onDisk(volume, name string) string {
	return filepath.Join(d.dir, "volumes", volume, "disk", name)
}

// writesRows has a task write rows for as long as it runs, and gives who counts
// them.
func (d *daemon) writesRows(volume string) (count func() int) {
	d.t.Helper()
	var task struct{ GUID string }
	d.api("POST", "/v3/apps/"+d.app("hello-postgres")+"/tasks", doc{"memory_in_mb": 32, "disk_in_mb": 64,
		"command": "i=0; while :; do i=$((i+1)); echo $i >> " + inContainer(volume) + "/rows; done"}, &task)
	eventually(d.t, 20*time.Second, func() string {
		if _, err := os.Stat(d.onDisk(volume, "rows")); err != nil || d.rowsIn(volume) < 1000 {
			return "few rows were written"
		}
		return ""
	})
	return func() int { return d.rowsIn(volume) }
}

// rowsIn counts the rows of a volume, which must have no gap. The last may be
// written at the moment.
func (d *daemon) rowsIn(volume string) int {
	d.t.Helper()
	text, err := os.ReadFile(d.onDisk(volume, "rows"))
	if err != nil {
		d.t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	lines = lines[:len(lines)-1]
	for n, l := range lines {
		if l != strconv.Itoa(n+1) {
			d.t.Fatalf("row %d is %q", n+1, l)
		}
	}
	return len(lines)
}

// killsABackup kills the daemon while it copies a volume.
func (d *daemon) killsABackup(volume string) {
	d.t.Helper()
	big := inContainer(volume) + "/big"
	d.tasks("head -c 300000000 /dev/urandom > "+big, "SUCCEEDED")
	dir := d.t.TempDir()
	cmd := exec.Command(d.binary, "backup", "--data-dir", d.dir, filepath.Join(dir, "all.backup"))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(d.holders()) == 0; {
		if time.Now().After(deadline) {
			d.t.Fatalf("nobody holds the volume:\n%s", &said)
		}
	}
	for deadline := time.Now().Add(time.Minute); !d.gathers(volume); {
		if time.Now().After(deadline) {
			d.t.Fatalf("the volume is not copied:\n%s", &said)
		}
	}
	d.kill()
	if err := cmd.Wait(); err == nil {
		d.t.Errorf("the backup was done before the daemon was killed:\n%s", &said)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(d.onDisk(volume, "after"), nil, 0o600) }()
	select {
	case err := <-wrote:
		if err != nil {
			d.t.Error(err)
		}
	case <-time.After(10 * time.Second):
		d.t.Error("the volume is still held")
	}
	eventually(d.t, 10*time.Second, func() string {
		if left := d.holders(); len(left) > 0 {
			return fmt.Sprintf("%v hold a volume", left)
		}
		return ""
	})
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		d.t.Errorf("the command left %v", left)
	}
	d.start()
	if left, _ := filepath.Glob(filepath.Join(d.dir, "backup-*")); len(left) > 0 {
		d.t.Errorf("left %v", left)
	}
	d.tasks("rm "+big, "SUCCEEDED")
}

// gathers tells whether some of a volume's copy is there.
func (d *daemon) gathers(volume string) bool {
	found, err := filepath.Glob(filepath.Join(d.dir, "backup-*", backup.TreesDir, volume+".tar"))
	if err != nil || len(found) == 0 {
		return false
	}
	info, err := os.Stat(found[0])
	return err == nil && info.Size() > 0
}

// holders are the processes that hold a volume of this daemon's.
func (d *daemon) holders() (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		line, err := os.ReadFile(name)
		if err == nil && bytes.Contains(line, []byte(server.HoldCommand)) && bytes.Contains(line, []byte(d.dir)) {
			pids = append(pids, strings.Split(name, "/")[2])
		}
	}
	return pids
}

// restored is a daemon that runs what a backup holds.
func (d *daemon) restored(file string) *daemon {
	d.t.Helper()
	e := d.elsewhere(d.t.(*testing.T))
	e.flags = d.flags
	if out, err := exec.Command(d.binary, "restore", "--data-dir", e.dir, file).CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	d.t.Cleanup(e.destroy)
	if mounts, err := os.ReadFile("/proc/mounts"); err != nil || strings.Contains(string(mounts), filepath.Dir(e.dir)) {
		d.t.Errorf("the restore left something mounted, %v", err)
	}
	e.start()
	return e
}

// keepsItsShape compares a volume with the one it was copied from.
func (d *daemon) keepsItsShape(first *daemon, volume string) {
	d.t.Helper()
	for _, name := range []string{"own", "own/mark", "again", "sparse", "."} {
		var got, want syscall.Stat_t
		if err := syscall.Lstat(d.onDisk(volume, name), &got); err != nil {
			d.t.Fatal(err)
		}
		if err := syscall.Lstat(first.onDisk(volume, name), &want); err != nil {
			d.t.Fatal(err)
		}
		if got.Mode != want.Mode || got.Uid != want.Uid || got.Gid != want.Gid || got.Nlink != want.Nlink || name == "sparse" && (got.Size != want.Size || got.Blocks > 1024) {
			d.t.Errorf("%s: got %+v; want %+v", name, got, want)
		}
	}
	if text, err := os.ReadFile(d.onDisk(volume, "link")); err != nil || string(text) != volumeMark+"\n" {
		d.t.Errorf("got %q, %v", text, err)
	}
	var got, want syscall.Statfs_t
	if err := syscall.Statfs(d.onDisk(volume, ""), &got); err != nil {
		d.t.Fatal(err)
	}
	if err := syscall.Statfs(first.onDisk(volume, ""), &want); err != nil {
		d.t.Fatal(err)
	}
	if got.Blocks != want.Blocks || got.Files != want.Files {
		d.t.Errorf("it holds %d blocks and %d files; want %d and %d", got.Blocks, got.Files, want.Blocks, want.Files)
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
	w, err := backup.Compress(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{func() error { _, err := w.Write(plain); return err }, w.Close, out.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"verify", bad}, {"restore", "--data-dir", filepath.Join(dir, "data"), bad}} {
		if out, err := exec.Command(binary, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "the backup is damaged: "+backup.TreesDir+"/") {
			t.Errorf("%s: got %v\n%s", args[0], err, out)
		}
	}
}
