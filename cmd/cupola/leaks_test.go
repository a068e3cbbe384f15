package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/server/doctor"
)

// before are the leaks of this machine that were there before the tests, which
// others left: the doctor looks at the whole of it.
var before []doctor.Leak

func TestMain(m *testing.M) {
	if binary := os.Getenv("CUPOLA"); binary != "" && os.Getenv("CUPOLA_TEST_ROOT") == "1" {
		before, _ = leaks(binary, noDir) // if it fails, so do the tests
	}
	os.Exit(m.Run())
}

// noDir is the data directory of no daemon.
var noDir = filepath.Join(os.TempDir(), "cupola-none")

// leaks asks the doctor, also about what is in a data directory.
func leaks(binary, dataDir string) (found []doctor.Leak, err error) {
	out, err := exec.Command(binary, "doctor", "--leaks", "--json", "--data-dir", dataDir).Output()
	if len(out) == 0 {
		return nil, err
	}
	err = json.Unmarshal(out, &found) // the exit code says no more than the list
	return found, err
}

// checkLeaks fails a test that has left something. Daemons of tests beside it
// are killed now and then, and clean up themselves.
func checkLeaks(t testing.TB, binary, dataDir string) {
	t.Helper()
	found, err := leaks(binary, dataDir)
	if err != nil {
		t.Errorf("doctor --leaks: %v", err)
	}
	for _, l := range found {
		another := l.Kind == "daemon" && strings.Contains(l.Name, daemonDir) && !strings.Contains(l.Name, dataDir)
		if !another && !slices.Contains(before, l) {
			t.Errorf("leaked %s", l)
		}
	}
}

// TestCleanupTakesTheLastOfAContainer has a daemon killed when all but a
// container's directory was gone.
func TestCleanupTakesTheLastOfAContainer(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	d.kill()
	if err := os.Mkdir(filepath.Join(d.dir, "cell", "11111111-2222-3333-4444-555555555555"), 0o700); err != nil {
		t.Fatal(err)
	} // and the test's own end cleans up, and looks for leaks
}
