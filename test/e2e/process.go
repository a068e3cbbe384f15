package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Alive reports whether a child runs.
func Alive(pid int) bool {
	return !slices.Contains([]string{"", "Z", "X"}, StateOf(fmt.Sprintf("/proc/%d", pid)))
}

// StateOf is the letter that proc has for the state of a process or thread, ""
// where there is none.
func StateOf(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, "stat"))
	_, after, _ := strings.Cut(string(text), ") ")
	state, _, _ := strings.Cut(after, " ")
	return state
}

// Processes are those of the daemon's containers, of which there must be some.
func (d *Daemon) Processes(t *testing.T) []string {
	t.Helper()
	pids := d.AnyProcesses(t)
	if len(pids) < 2 {
		t.Fatalf("got processes %v; want an init and its app", pids)
	}
	return pids
}

// AnyProcesses are those of the daemon's containers, if there are any.
func (d *Daemon) AnyProcesses(t *testing.T) (pids []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		cgroup, err := os.ReadFile("/proc/" + e.Name() + "/cgroup")
		if err == nil && ContainsInstance(string(cgroup), d) {
			pids = append(pids, e.Name())
		}
	}
	slices.Sort(pids)
	return pids
}

// ContainsInstance reports whether a cgroup is that of a daemon's container.
func ContainsInstance(cgroup string, d *Daemon) bool {
	states, err := os.ReadDir(d.Dir + "/cell")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(states, func(s os.DirEntry) bool { return strings.Contains(cgroup, s.Name()) })
}

// Containers are the GUIDs of the containers that the daemon's cell keeps.
func (d *Daemon) Containers() (guids []string) {
	entries, err := os.ReadDir(d.Dir + "/cell")
	if err != nil {
		d.T.Fatal(err)
	}
	for _, e := range entries {
		guids = append(guids, e.Name())
	}
	slices.Sort(guids)
	return guids
}
