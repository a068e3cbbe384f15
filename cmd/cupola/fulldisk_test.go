package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk is a file system of its own, on a loop device.
type smallDisk struct {
	t   testing.TB
	dir string
}

// newSmallDisk mounts an empty ext4 of a size, which root can fill to the last block.
func newSmallDisk(t testing.TB, megabytes int) *smallDisk {
	t.Helper()
	needBinary(t)
	d := &smallDisk{t, newDaemonDir(t)}
	image := d.dir + ".img"
	t.Cleanup(func() {
		if err := errors.Join(os.RemoveAll(d.dir), os.RemoveAll(image)); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, int64(megabytes)<<20)); err != nil {
		t.Fatal(err)
	}
	d.must("mkfs.ext4", "-q", "-m", "0", image)
	d.must("mount", "-o", "loop", image, d.dir)
	t.Cleanup(func() { d.must("umount", d.dir) })
	if err := os.Chmod(d.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *smallDisk) must(name string, args ...string) {
	s.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// start starts a daemon with its data on the disk.
func (s *smallDisk) start(flags ...string) *daemon {
	s.t.Helper()
	d := &daemon{t: s.t, binary: needBinary(s.t), dir: filepath.Join(s.dir, "data"), addr: "127.0.0.1:0", flags: flags, log: &logBuffer{}, admin: &adminSession{}}
	s.t.Cleanup(func() {
		if err := os.RemoveAll(filepath.Join(s.dir, "filler")); err != nil { // or nothing could be cleaned up
			s.t.Error(err)
		}
		d.destroy()
	})
	d.start()
	return d
}

// fill takes every free block of the disk.
func (s *smallDisk) fill() {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, "filler"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		_, err := f.Write(make([]byte, size))
		switch {
		case errors.Is(err, syscall.ENOSPC):
			size /= 2
		case err != nil:
			s.t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		s.t.Fatal(err)
	}
}

// free gives back what fill took.
func (s *smallDisk) free() {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.dir, "filler")); err != nil {
		s.t.Fatal(err)
	}
}

// TestFullDisk kills a daemon whose disk has no byte free. The next one starts,
// leads to what runs without replacing it, answers what can be answered, and
// says of the rest that the disk is full. With room again, all goes on.
func TestFullDisk(t *testing.T) {
	s := newSmallDisk(t, 768)
	d := s.start()
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.api("POST", "/v3/apps/"+d.app("hello-node")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	before := d.running("hello-node", "web", 2)
	pids := d.processes(t)
	for round := range 3 {
		s.fill()
		if round == 2 { // a daemon that ended well leaves no write-ahead log
			d.cmd.Process.Signal(syscall.SIGTERM)
			d.cmd.Wait()
			s.fill()
		} else {
			d.kill()
			s.fill()
		}
		d.start()
		d.answers("hello-node", "hello from")
		d.refusesForRoom()
		after := d.running("hello-node", "web", 2)
		if now := d.processes(t); !slices.Equal(pids, now) || !slices.Equal(guids(before), guids(after)) {
			t.Errorf("got processes %v of %v; want %v of %v", now, guids(after), pids, guids(before))
		}
	}
	if said := d.log.String(); !strings.Contains(said, "disk is full") {
		t.Errorf("the log does not say that the disk is full:\n%s", said)
	}
	s.free()
	d.api("POST", "/v3/organizations", doc{"name": "after"}, nil)
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.answers("hello-node", "hello from")
}

// postJSON posts as admin.
func (d *daemon) postJSON(path string, body any) (status int, text string) {
	d.t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.post(path, "application/json", bytes.NewReader(content))
}

// refusesForRoom makes organizations until one does not fit, and looks at the answer.
func (d *daemon) refusesForRoom() {
	d.t.Helper()
	metadata := doc{"annotations": doc{"filling": strings.Repeat("x", 5000)}}
	for n := range 5000 {
		status, body := d.postJSON("/v3/organizations", doc{"name": fmt.Sprintf("org-%d-%d", d.cmd.Process.Pid, n), "metadata": metadata})
		if status == http.StatusCreated {
			continue
		}
		if status != http.StatusInsufficientStorage || !strings.Contains(body, `"CF-DatabaseError"`) || !strings.Contains(body, "disk is full") || strings.Contains(body, d.dir) {
			d.t.Errorf("got %d %s; want 507, CF-DatabaseError, which disk is full, and no path", status, body)
		}
		d.api("GET", "/v3/organizations?per_page=1", nil, nil)
		return
	}
	d.t.Fatal("5000 organizations fit on a full disk")
}

// TestADiskThatTurnsReadOnly ends a file system's writes as the kernel does after
// an error: apps and reads go on, and changes are refused by name.
func TestADiskThatTurnsReadOnly(t *testing.T) {
	s := newSmallDisk(t, 768)
	d := s.start()
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.api("POST", "/v3/apps/"+d.app("hello-node")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	before := d.running("hello-node", "web", 2)
	defer s.repair(d, d.processes(t))
	s.must("mount", "-o", "remount,abort", s.dir)
	status, body := d.postJSON("/v3/organizations", doc{"name": "refused"})
	if status != http.StatusServiceUnavailable || !strings.Contains(body, `"CF-ServiceUnavailable"`) || !strings.Contains(body, "data directory's disk") || strings.Contains(body, d.dir) {
		t.Errorf("got %d %s; want 503 CF-ServiceUnavailable, the disk, and no path", status, body)
	}
	d.answers("hello-node", "hello from")
	if after := d.running("hello-node", "web", 2); !slices.Equal(guids(before), guids(after)) {
		t.Errorf("got instances %v; want %v", guids(after), guids(before))
	}
	if out, _ := d.run("doctor", "--data-dir", d.dir); !strings.Contains(out, "cannot be written") {
		t.Errorf("doctor does not say that the disk cannot be written:\n%s", out)
	}
}

// repair makes the disk writable again, as an operator would have to: with all
// that uses it stopped. pids are the processes of the daemon's containers.
func (s *smallDisk) repair(d *daemon, pids []string) {
	s.t.Helper()
	d.kill()
	for _, text := range pids {
		pid, _ := strconv.Atoi(text)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) { // it went with its init
			s.t.Fatalf("kill %d: %v", pid, err)
		}
	}
	eventually(s.t, 20*time.Second, func() string {
		if out, err := exec.Command("umount", "-R", s.dir).CombinedOutput(); err != nil {
			return string(out)
		}
		return ""
	})
	if out, err := exec.Command("e2fsck", "-fy", s.dir+".img").CombinedOutput(); err != nil && exec.Command("e2fsck", "-fn", s.dir+".img").Run() != nil {
		s.t.Fatalf("e2fsck: %v\n%s", err, out)
	}
	s.must("mount", "-o", "loop", s.dir+".img", s.dir)
}
