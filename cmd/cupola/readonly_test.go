package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cupola/runtime/users"
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
// runs of it: the doctor names that, and its command takes away all but files.
// The next daemon does not start before the disk is mended, and says so.
func TestCleanupOfAReadOnlyDisk(t *testing.T) {
	t.Parallel()
	disk := newLoopDisk(t, 768<<20)
	d := disk.start()
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.api("POST", "/v3/apps/"+d.app("hello-node")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	d.running("hello-node", "web", 2)
	pids := d.processes(t)
	if len(claimsBelow(d.dir)) == 0 {
		t.Log("containers here have no users of their own")
	}
	defer func() { disk.repair(d, nil) }()
	mustRun(t, "mount", "-o", "remount,abort", disk.mount)
	d.kill()
	out, err := exec.Command(d.binary, "serve", "--data-dir", d.dir, "--http", "127.0.0.1:0", "--https", "off").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "read-only") || !strings.Contains(string(out), "cupola cleanup --data-dir "+d.dir) {
		t.Errorf("serve: %v\n%s", err, out)
	}
	mend := ""
	found, err := leaks(d.binary, noDir)
	for _, l := range found {
		if strings.Contains(l.Name, d.dir) {
			mend = strings.TrimPrefix(l.Fix, "sudo cupola ")
		}
	}
	if want := "cleanup --data-dir " + d.dir; err != nil || mend != want {
		t.Fatalf("the doctor says %q, %v; want %q", mend, err, want)
	}
	out, err = exec.Command(d.binary, strings.Fields(mend)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "files of its containers are left") || !strings.Contains(string(out), "fsck") {
		t.Errorf("cleanup: %v\n%s", err, out)
	}
	for _, text := range pids {
		if pid, err := strconv.Atoi(text); err != nil || alive(pid) {
			t.Errorf("process %s still runs, %v", text, err)
		}
	}
	if left := claimsBelow(d.dir); len(left) > 0 {
		t.Errorf("left claims of users %v", left)
	}
	if found, err = leaks(d.binary, noDir); err != nil {
		t.Error(err)
	}
	for _, l := range found {
		if strings.Contains(l.Name, d.dir) {
			t.Errorf("left %s", l)
		}
	}
}
