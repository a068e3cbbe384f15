package restart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cupola/test/e2e"
)

// TestCleanupTakesTheLastOfAContainer kills a daemon when all but a
// container's directory was gone.
func TestCleanupTakesTheLastOfAContainer(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.Kill()
	if err := os.Mkdir(filepath.Join(d.Dir, "cell", "11111111-2222-3333-4444-555555555555"), 0o700); err != nil {
		t.Fatal(err)
	} // and the test's own end cleans up, and looks for leaks
}

// TestCleanupOfADeletedDirectory deletes a data directory whose apps run, as far
// as that goes: what is mounted stays.
func TestCleanupOfADeletedDirectory(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.Kill()
	_ = exec.Command("rm", "-rf", "--one-file-system", d.Dir).Run() // it fails where something is mounted
	if _, err := os.Stat(filepath.Join(d.Dir, "db")); err == nil {
		t.Fatal("rm deleted nothing")
	} // and the test's own end cleans up, and looks for leaks
}

// TestRefusedStartLeavesNothing starts daemons that find late that they cannot run as they were told. What they had made is gone
// then, but for what containers of an earlier daemon need.
func TestRefusedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	binary := e2e.NeedBinary(t)
	refuse := func(dir string) {
		t.Helper()
		out, err := exec.Command(binary, "serve", "--data-dir", dir, "--http", "127.0.0.1:0", "--https", "off", "--ssh", "off", "--tcp", "off", "--kubernetes", "far="+filepath.Join(dir, "none")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "--kubernetes far") {
			t.Fatalf("got %v\n%s\nwant it refused for its kubeconfig", err, out)
		}
	}
	dir := e2e.NewDir(t)
	defer os.RemoveAll(dir)
	refuse(dir)
	e2e.CheckLeaks(t, binary, dir)
	d := e2e.StartDaemon(t, binary)
	if out, err := d.Run("push", e2e.Example(t, "static")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	before := d.Running("hello-static", "web", 1)[0]
	d.Kill()
	refuse(d.Dir)
	d.Start()
	if after := d.Running("hello-static", "web", 1)[0]; after.InstanceGUID != before.InstanceGUID {
		t.Errorf("got instance %s; want the one of before, %s", after.InstanceGUID, before.InstanceGUID)
	}
}
