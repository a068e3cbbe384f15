package restart

import (
	"os"
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
