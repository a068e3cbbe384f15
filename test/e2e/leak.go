package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/server/datadir"
	"cupola/server/doctor"
)

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

// CheckLeaks fails a test that left something of a data directory's daemon. make
// test looks at the whole machine at its end.
func CheckLeaks(t testing.TB, binary, dataDir string) {
	t.Helper()
	for _, problem := range leaked(binary, dataDir) {
		t.Error(problem)
	}
}

// leaked finds what is left of a data directory's daemon, or of those whose
// directories' paths begin so. Concurrent tests have their own. A
// busy kernel takes its time to release things.
func leaked(binary, dataDir string) (problems []string) {
	for range 60 {
		if problems = leakedNow(binary, dataDir); len(problems) == 0 {
			break
		}
		<-time.After(500 * time.Millisecond)
	}
	return problems
}

func leakedNow(binary, dataDir string) (problems []string) {
	inside, err := Leaks(binary, dataDir) // spares what the next daemon would adopt
	outside, failed := doctor.Leaks(context.Background(), datadir.OwnerOf)
	if err := errors.Join(err, failed); err != nil {
		problems = append(problems, fmt.Sprintf("doctor --leaks: %v", err))
	}
	for _, l := range append(inside, outside...) {
		if l.Kind == "container" || belongs(l, datadir.OwnerOf(dataDir)) {
			problems = append(problems, fmt.Sprintf("leaked %s", l))
		}
	}
	return problems
}

// belongs reports whether a leak is of an owner: its name has a path, or the name that the owner gives.
func belongs(l doctor.Leak, o datadir.Owner) bool {
	switch l.Kind {
	case "nftables table", "cgroup":
		return l.Name == o.Table
	case "process":
		return strings.HasSuffix(l.Name, " in cgroup "+o.Cgroup)
	case "link":
		return strings.HasPrefix(l.Name, o.LinkPrefix)
	case "address":
		return l.Name == o.Subnet.Addr().Next().String()+" on lo"
	}
	return strings.Contains(l.Name, o.DataDir)
}
