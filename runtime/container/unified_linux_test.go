package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unified is a tree of v2 made of plain files.
func unified(t *testing.T, controllers string) cgroupTree {
	t.Helper()
	tree := cgroupTree{v2: true, parent: "parent", roots: map[string]string{"": t.TempDir()}}
	parent := tree.dir("", "")
	if err := os.Mkdir(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": "", "parent/cgroup.subtree_control": ""} {
		if err := os.WriteFile(filepath.Join(tree.roots[""], name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func TestUnifiedRootLacksControllers(t *testing.T) {
	err := unified(t, "cpuset cpu io\n").ready()
	if err == nil || !strings.Contains(err.Error(), "lacks the controllers memory, pids") {
		t.Errorf("got %v; want those that are missing named", err)
	}
}

func TestUnifiedControllersArePassedOn(t *testing.T) {
	tree := unified(t, "cpuset cpu io memory pids\n")
	if err := tree.ready(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{tree.roots[""], tree.dir("", "")} {
		// As one write: see ready.
		if got, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); err != nil || string(got) != "+cpu +memory +pids" {
			t.Errorf("%s: got %q, %v; want all three", dir, got, err)
		}
	}
}

// TestUnifiedStats reads what Linux 6.1 showed of a container.
func TestUnifiedStats(t *testing.T) {
	tree := unified(t, "")
	dir := tree.dir("", "app")
	for name, text := range map[string]string{
		"memory.current": "133603328\n", "memory.max": "134217728\n", "pids.current": "12\n",
		"memory.stat":   "anon 9437184\nfile 123133952\ninactive_file 119263232\nactive_file 3870720\n",
		"cpu.stat":      "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n",
		"memory.events": "low 0\nhigh 0\nmax 31\noom 1\noom_kill 1\noom_group_kill 0\n",
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := Stats{CPU: 1500000000, MemoryBytes: 14340096, MemoryLimitBytes: 134217728, Pids: 12}
	if got, err := tree.stats("app"); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if !tree.oomKilled("app") {
		t.Error("got no kill for memory")
	}
}

func TestLimitsOfProcessorsAndCoreFiles(t *testing.T) {
	for cpus, want := range map[float64]string{0.25: "25000 100000", 0.001: "1000 100000", 0: ""} {
		got := ""
		for _, s := range limitsV2(Limits{CPUs: cpus}) {
			if s.file == "cpu.max" {
				got = s.value
			}
		}
		if got != want {
			t.Errorf("got %q for %g processors; want %q", got, cpus, want)
		}
	}
	s := settings{core: 100}
	for size, want := range map[uint64]string{0: "4=0", 50: "4=50", 200: "4=100"} {
		if got := s.rlimits(Process{Core: size}); got != want {
			t.Errorf("got %s for a core file of %d; want %s", got, size, want)
		}
	}
}
