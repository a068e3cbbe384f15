package restart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cupola/runtime/users"
	"cupola/test/e2e"
)

// claimsBelow are the ranges of users that containers of a data directory have.
func claimsBelow(dataDir string) (all []string) {
	entries, _ := os.ReadDir(users.DefaultDir) // there may be none yet
	for _, e := range entries {
		if owner, err := os.Readlink(filepath.Join(users.DefaultDir, e.Name())); err == nil && strings.HasPrefix(owner, dataDir+"/") {
			all = append(all, e.Name())
		}
	}
	return all
}

// TestCleanupOfAReadOnlyDisk ends a daemon whose disk turned read-only, and what
// runs of it: the doctor names that, and its command removes all but files.
// The next daemon does not start before the disk is repaired, and says so.
func TestCleanupOfAReadOnlyDisk(t *testing.T) {
	t.Parallel()
	disk := e2e.NewLoopDisk(t, 768<<20)
	d := disk.Start()
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.API("POST", "/v3/apps/"+d.App("hello-node")+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	d.Running("hello-node", "web", 2)
	pids := d.Processes(t)
	if len(claimsBelow(d.Dir)) == 0 {
		t.Log("containers here have no users of their own")
	}
	defer func() { repair(disk, d, nil) }()
	e2e.MustRun(t, "mount", "-o", "remount,abort", disk.Mount)
	d.Kill()
	out, err := exec.Command(d.Binary, "serve", "--data-dir", d.Dir, "--http", "127.0.0.1:0", "--https", "off").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "read-only") || !strings.Contains(string(out), "cupola cleanup --data-dir "+d.Dir) {
		t.Errorf("serve: %v\n%s", err, out)
	}
	fix := ""
	found, err := e2e.Leaks(d.Binary, e2e.NoDir)
	for _, l := range found {
		if strings.Contains(l.Name, d.Dir) {
			fix = strings.TrimPrefix(l.Fix, "sudo cupola ")
		}
	}
	if want := "cleanup --data-dir " + d.Dir; err != nil || fix != want {
		t.Fatalf("the doctor says %q, %v; want %q", fix, err, want)
	}
	out, err = exec.Command(d.Binary, strings.Fields(fix)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "files of its containers are left") || !strings.Contains(string(out), "fsck") {
		t.Errorf("cleanup: %v\n%s", err, out)
	}
	for _, text := range pids {
		if pid, err := strconv.Atoi(text); err != nil || e2e.Alive(pid) {
			t.Errorf("process %s still runs, %v", text, err)
		}
	}
	if left := claimsBelow(d.Dir); len(left) > 0 {
		t.Errorf("left claims of users %v", left)
	}
	if found, err = e2e.Leaks(d.Binary, e2e.NoDir); err != nil {
		t.Error(err)
	}
	for _, l := range found {
		if strings.Contains(l.Name, d.Dir) {
			t.Errorf("left %s", l)
		}
	}
}
