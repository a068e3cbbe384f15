package e2e

import (
	"encoding/json"
	"fmt"
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

// NoDir is the data directory of no daemon.
var NoDir = filepath.Join(os.TempDir(), "cupola-none")

// Leaks asks the doctor, also about what is in a data directory.
func Leaks(binary, dataDir string) (found []doctor.Leak, err error) {
	out, err := exec.Command(binary, "doctor", "--leaks", "--json", "--data-dir", dataDir).Output()
	if len(out) == 0 {
		return nil, err
	}
	err = json.Unmarshal(out, &found) // the exit code says no more than the list
	return found, err
}

// CheckLeaks fails a test that left something.
func CheckLeaks(t testing.TB, binary, dataDir string) {
	t.Helper()
	for _, problem := range leaked(binary, dataDir) {
		t.Error(problem)
	}
}

// leaked finds what the tests left. Daemons of tests beside this one are killed
// now and then, and clean up themselves.
func leaked(binary, dataDir string) (problems []string) {
	found, err := Leaks(binary, dataDir)
	if err != nil {
		problems = append(problems, fmt.Sprintf("doctor --leaks: %v", err))
	}
	for _, l := range found {
		another := l.Kind == "daemon" && strings.Contains(l.Name, DaemonDir) && !strings.Contains(l.Name, dataDir)
		if !another && !slices.Contains(before, l) {
			problems = append(problems, fmt.Sprintf("leaked %s", l))
		}
	}
	return problems
}
