package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFullDisk kills a daemon whose disk has no byte free. The next one starts,
// leads to what runs without replacing it, answers what can be answered, and
// says of the rest that the disk is full. With room again, all goes on.
func TestFullDisk(t *testing.T) {
	disk := newLoopDisk(t, 768<<20)
	d := disk.start()
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.api("POST", "/v3/apps/"+d.app("hello-node")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	before := d.running("hello-node", "web", 2)
	pids := d.processes(t)
	for round := range 3 {
		disk.fill()
		if round == 2 { // a daemon that ended well leaves no write-ahead log
			d.cmd.Process.Signal(syscall.SIGTERM)
			d.cmd.Wait()
			disk.fill()
		} else {
			d.kill()
			disk.fill()
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
	disk.free()
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
	disk := newLoopDisk(t, 768<<20)
	d := disk.start()
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.api("POST", "/v3/apps/"+d.app("hello-node")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	before := d.running("hello-node", "web", 2)
	defer disk.repair(d, d.processes(t))
	mustRun(t, "mount", "-o", "remount,abort", disk.mount)
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
func (l *loopDisk) repair(d *daemon, pids []string) {
	l.t.Helper()
	d.kill()
	for _, text := range pids {
		pid, _ := strconv.Atoi(text)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) { // it went with its init
			l.t.Fatalf("kill %d: %v", pid, err)
		}
	}
	eventually(l.t, 20*time.Second, func() string {
		if out, err := exec.Command("umount", "-R", l.mount).CombinedOutput(); err != nil {
			return string(out)
		}
		return ""
	})
	if out, err := exec.Command("e2fsck", "-fy", l.image).CombinedOutput(); err != nil && exec.Command("e2fsck", "-fn", l.image).Run() != nil {
		l.t.Fatalf("e2fsck: %v\n%s", err, out)
	}
	mustRun(l.t, "mount", "-o", "loop", l.image, l.mount)
}
