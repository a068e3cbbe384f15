package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hierarchies are the mounted cgroup hierarchies: the unified one of version 2
// if it is the only one, else those of version 1 by controller.
type hierarchies struct {
	unified string
	v1      map[string]string
	hybrid  bool // version 2 is mounted too, without controllers
}

// parseHierarchies reads a mountinfo.
func parseHierarchies(mountinfo string) hierarchies {
	h := hierarchies{v1: map[string]string{}}
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(line, " - ")
		at, kind := strings.Fields(left), strings.Fields(right)
		if !ok || len(at) < 5 || len(kind) < 3 || !strings.HasPrefix(at[4], "/sys/fs/cgroup") {
			continue
		}
		switch kind[0] {
		case "cgroup":
			for controller := range strings.SplitSeq(kind[2], ",") {
				h.v1[controller] = at[4]
			}
		case "cgroup2":
			if at[4] == "/sys/fs/cgroup" {
				h.unified = at[4]
			} else {
				h.hybrid = true
			}
		}
	}
	return h
}

func (m *machine) cgroup(context.Context) Result {
	h := m.hierarchies()
	if h.unified != "" {
		return m.cgroup2(h.unified)
	}
	return m.cgroup1(h)
}

func (m *machine) cgroup2(root string) Result {
	have := strings.Fields(m.read(filepath.Join(root, "cgroup.controllers")))
	part := m.exists(filepath.Join(root, "cgroup.type")) // the true root has no type
	if missing := without(limiting(), have); len(missing) > 0 {
		return failure("cgroup v2 lacks the controllers "+strings.Join(missing, ", "), m.enableMissing(part, missing))
	}
	if !m.superuser {
		return fine("v2 with memory, cpu, pids")
	}
	if err := m.tryCgroup(root); err != nil {
		return failed(err, "run cupola on the machine itself, or in a container that is --privileged --cgroupns=host")
	}
	// Only the true root of the hierarchy may have both processes and
	// controlled children.
	if part && m.read(filepath.Join(root, "cgroup.procs")) != "" {
		return failure("/sys/fs/cgroup is not the root of the hierarchy and contains processes, so cgroups below it cannot have limits", moveProcesses)
	}
	if err := m.tryControllers(root); err != nil {
		return failed(err, "run cupola on the machine itself, without a real-time scheduler for its processes")
	}
	return fine("v2 with memory, cpu, pids")
}

// enableMissing returns the fix for missing controllers. In a part of the
// hierarchy, its creator has to delegate them.
func (m *machine) enableMissing(part bool, missing []string) string {
	switch {
	case part:
		return "run cupola on the machine itself, or in a container that is --privileged --cgroupns=host; under systemd, with Delegate=yes"
	case slices.Contains(missing, "memory"):
		return m.bootWith("cgroup_enable=memory")
	}
	return m.bootWith("cgroup_no_v1=all") + "   # if cgroup v1 has them: grep cgroup /proc/mounts"
}

// moveProcesses moves all processes of a container whose cgroup is its root
// into a child cgroup.
const moveProcesses = "sudo sh -c 'mkdir -p /sys/fs/cgroup/init && xargs -rn1 < /sys/fs/cgroup/cgroup.procs > /sys/fs/cgroup/init/cgroup.procs'   # or start the container with --cgroupns=host"

// tryControllers enables the controllers for the root's children, as the daemon
// does, and disables those that were off before.
func (m *machine) tryControllers(root string) error {
	file := filepath.Join(root, "cgroup.subtree_control")
	off := without(limiting(), strings.Fields(m.read(file)))
	if len(off) == 0 {
		return nil
	}
	// Enable all at once: cpu alone might succeed and leave domain-invalid
	// children that accept no process.
	if err := m.write(file, "+"+strings.Join(off, " +")); err != nil {
		return fmt.Errorf("enable the cgroup controllers %s: %w", strings.Join(off, ", "), err)
	}
	_ = m.write(file, "-"+strings.Join(off, " -")) // fails if they are in use since
	return nil
}

// limiting returns the controllers of containers' limits.
func limiting() []string { return []string{"memory", "cpu", "pids"} }

// noCgroups is what a container without privileges has, too, which may mount none.
const noCgroups = "no cgroups are mounted"

func (m *machine) cgroup1(h hierarchies) Result {
	if len(h.v1) == 0 {
		return failure(noCgroups, m.mountCgroups())
	}
	need := []string{"memory", "cpu", "cpuacct", "pids", "devices"}
	for _, controller := range need {
		if h.v1[controller] == "" {
			dir := "/sys/fs/cgroup/" + controller
			return failure("cgroup v1 lacks the controller "+controller,
				fmt.Sprintf("sudo mkdir -p %s && sudo mount -t cgroup -o %s cgroup %s", dir, controller, dir))
		}
		if m.superuser {
			if err := m.tryCgroup(h.v1[controller]); err != nil {
				return failed(err, "run cupola on the machine itself, or in a container that is --privileged")
			}
		}
	}
	text := "v1"
	if h.hybrid {
		text = "v1, hybrid,"
	}
	return fine(text + " with memory, cpu, pids, devices")
}

// mountCgroups returns how to mount what an engine left out of its container: all
// hierarchies of version 1 where they have the controllers, else version 2.
func (m *machine) mountCgroups() string {
	if !strings.Contains(m.read("proc/self/cgroup"), ":memory:") {
		return "sudo mount -t cgroup2 none /sys/fs/cgroup"
	}
	return `sudo sh -c 'cd /sys/fs/cgroup && mount -t tmpfs none . && cd . && for c in $(cut -d: -f2 /proc/self/cgroup | grep -v =); do mkdir $c && mount -t cgroup -o $c none $c; done'`
}

func (m *machine) tryCgroup(root string) error {
	dir := m.path(filepath.Join(root, fmt.Sprintf("cupola-doctor-%d", os.Getpid())))
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("create a cgroup: %w", err)
	}
	return os.Remove(dir)
}

// swap checks that an app that reaches its memory limit does not continue in swap.
func (m *machine) swap(context.Context) Result {
	if strings.Count(m.read("proc/swaps"), "\n") == 0 {
		return fine("none")
	}
	h := m.hierarchies()
	limited := h.v1["memory"] != "" && m.exists(filepath.Join(h.v1["memory"], "memory.memsw.limit_in_bytes"))
	if h.unified != "" {
		// The root has no limits: look at the groups below it.
		limited = m.any(h.unified, "*/memory.swap.max") || !m.any(h.unified, "*/memory.max")
	}
	if !limited {
		return warning("the kernel does not account swap: an app over its memory limit swaps before it is killed", m.bootWith("swapaccount=1"))
	}
	return fine("accounted; apps get none")
}

func without(list, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(gone, s) })
}
