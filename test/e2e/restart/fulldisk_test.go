package restart

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

	"cupola/test/e2e"
)

// TestFullDisk kills a daemon whose disk has no byte free. The next one starts,
// leads to what runs without replacing it, answers what can be answered, and
// says of the rest that the disk is full. With room again, all goes on.
func TestFullDisk(t *testing.T) {
	disk := e2e.NewLoopDisk(t, 768<<20)
	d := disk.Start()
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.API("POST", "/v3/apps/"+d.App("hello-node")+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	before := d.Running("hello-node", "web", 2)
	pids := d.Processes(t)
	for round := range 3 {
		disk.Fill()
		if round == 2 { // a daemon that ended well leaves no write-ahead log
			d.Cmd.Process.Signal(syscall.SIGTERM)
			d.Cmd.Wait()
			disk.Fill()
		} else {
			d.Kill()
			disk.Fill()
		}
		d.Start()
		d.Answers("hello-node", "hello from")
		refusesForRoom(d)
		after := d.Running("hello-node", "web", 2)
		if now := d.Processes(t); !slices.Equal(pids, now) || !slices.Equal(e2e.GUIDs(before), e2e.GUIDs(after)) {
			t.Errorf("got processes %v of %v; want %v of %v", now, e2e.GUIDs(after), pids, e2e.GUIDs(before))
		}
	}
	if said := d.Log.String(); !strings.Contains(said, "disk is full") {
		t.Errorf("the log does not say that the disk is full:\n%s", said)
	}
	disk.Free()
	d.API("POST", "/v3/organizations", e2e.Doc{"name": "after"}, nil)
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.Answers("hello-node", "hello from")
}

// postJSON posts as admin.
func postJSON(d *e2e.Daemon, path string, body any) (status int, text string) {
	d.T.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		d.T.Fatal(err)
	}
	return d.Post(path, "application/json", bytes.NewReader(content))
}

// refusesForRoom makes organizations until one does not fit, and looks at the answer.
func refusesForRoom(d *e2e.Daemon) {
	d.T.Helper()
	metadata := e2e.Doc{"annotations": e2e.Doc{"filling": strings.Repeat("x", 5000)}}
	for n := range 5000 {
		status, body := postJSON(d, "/v3/organizations", e2e.Doc{"name": fmt.Sprintf("org-%d-%d", d.Cmd.Process.Pid, n), "metadata": metadata})
		if status == http.StatusCreated {
			continue
		}
		if status != http.StatusInsufficientStorage || !strings.Contains(body, `"CF-DatabaseError"`) || !strings.Contains(body, "disk is full") || strings.Contains(body, d.Dir) {
			d.T.Errorf("got %d %s; want 507, CF-DatabaseError, which disk is full, and no path", status, body)
		}
		d.API("GET", "/v3/organizations?per_page=1", nil, nil)
		return
	}
	d.T.Fatal("5000 organizations fit on a full disk")
}

// TestADiskThatTurnsReadOnly ends a file system's writes as the kernel does after
// an error: apps and reads go on, and changes are refused by name.
func TestADiskThatTurnsReadOnly(t *testing.T) {
	disk := e2e.NewLoopDisk(t, 768<<20)
	d := disk.Start()
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.API("POST", "/v3/apps/"+d.App("hello-node")+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	before := d.Running("hello-node", "web", 2)
	defer repair(disk, d, d.Processes(t))
	if got := asks(d.Addr, "/healthz", ""); got != "200 ok" {
		t.Errorf("health: got %s; want 200 ok", got)
	}
	e2e.MustRun(t, "mount", "-o", "remount,abort", disk.Mount)
	e2e.Eventually(t, time.Minute, func() string {
		if got := asks(d.Addr, "/healthz", ""); got != "503 the database cannot be written" {
			return got
		}
		return ""
	})
	status, body := postJSON(d, "/v3/organizations", e2e.Doc{"name": "refused"})
	if status != http.StatusServiceUnavailable || !strings.Contains(body, `"CF-ServiceUnavailable"`) || !strings.Contains(body, "data directory's disk") || strings.Contains(body, d.Dir) {
		t.Errorf("got %d %s; want 503 CF-ServiceUnavailable, the disk, and no path", status, body)
	}
	d.Answers("hello-node", "hello from")
	if after := d.Running("hello-node", "web", 2); !slices.Equal(e2e.GUIDs(before), e2e.GUIDs(after)) {
		t.Errorf("got instances %v; want %v", e2e.GUIDs(after), e2e.GUIDs(before))
	}
	if out, _ := d.Run("doctor", "--data-dir", d.Dir); !strings.Contains(out, "cannot write to") {
		t.Errorf("doctor does not say that the disk cannot be written to:\n%s", out)
	}
}

// repair makes the disk writable again, as an operator would have to: with all
// that uses it stopped. pids are the processes of the daemon's containers.
func repair(l *e2e.LoopDisk, d *e2e.Daemon, pids []string) {
	l.T.Helper()
	d.Kill()
	for _, text := range pids {
		pid, _ := strconv.Atoi(text)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) { // it went with its init
			l.T.Fatalf("kill %d: %v", pid, err)
		}
	}
	e2e.Eventually(l.T, time.Minute, func() string {
		if out, err := exec.Command("umount", "-R", l.Mount).CombinedOutput(); err != nil {
			return string(out)
		}
		return ""
	})
	l.WaitFree()
	if out, err := exec.Command("e2fsck", "-fy", l.Image).CombinedOutput(); err != nil && exec.Command("e2fsck", "-fn", l.Image).Run() != nil {
		l.T.Fatalf("e2fsck: %v\n%s", err, out)
	}
	e2e.MustRun(l.T, "mount", "-o", "loop", l.Image, l.Mount)
}
