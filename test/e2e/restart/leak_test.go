package restart

import (
	"os"
	"os/exec"
	"path/filepath"
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
