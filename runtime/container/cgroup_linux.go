package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// cgroupTree is where containers' cgroups lie: one directory in each hierarchy
// of cgroup v1, or one in the unified hierarchy of v2.
type cgroupTree struct {
	v2     bool
	parent string
	// roots maps a controller to its mount point; v2 has the one key "".
	roots map[string]string
}

// unifiedRoot is where v2 is mounted if it is the machine's only hierarchy.
const unifiedRoot = "/sys/fs/cgroup"

// controllersV2 are those that hold containers to their limits.
func controllersV2() []string { return []string{"cpu", "memory", "pids"} }

// usedControllers are those of v1 that a container is put into. The systemd
// hierarchy is among them so that stopping the daemon's unit does not end the
// containers. The last two may be missing.
func usedControllers() []string {
	return []string{"memory", "cpu", "cpuacct", "pids", "devices", "name=systemd", freezer}
}

func findCgroups(parent string) (cgroupTree, error) {
	if is(unifiedRoot, unix.CGROUP2_SUPER_MAGIC) {
		return cgroupTree{v2: true, parent: parent, roots: map[string]string{"": unifiedRoot}}, nil
	}
	t := cgroupTree{parent: parent, roots: map[string]string{}}
	mounts, err := cgroups.GetCgroupMounts(true)
	if err != nil {
		return t, fmt.Errorf("find cgroups: %w", err)
	}
	for _, m := range mounts {
		for _, controller := range m.Subsystems {
			if slices.Contains(usedControllers(), controller) {
				t.roots[controller] = m.Mountpoint
			}
		}
	}
	for _, need := range []string{"memory", "cpu", "cpuacct", "pids", "devices"} {
		if t.roots[need] == "" {
			return t, fmt.Errorf("cgroup controller %s is not mounted below /sys/fs/cgroup", need)
		}
	}
	return t, nil
}

// ready makes v2's parent and gives it the controllers, of which the kernel
// gives a cgroup only what all above it pass on. That they are passed on below
// the parent too keeps systemd from taking them away at the root again. On v1
// each hierarchy has its controllers anywhere.
func (t cgroupTree) ready() error {
	if !t.v2 {
		return nil
	}
	root, parent := t.roots[""], t.dir("", "")
	if missing := t.missing(); len(missing) > 0 {
		return fmt.Errorf("cgroup v2 at %s lacks the controllers %s", root, strings.Join(missing, ", "))
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	// Enable all at once: if memory is refused because the root has processes,
	// cpu alone would succeed, and make the children domain-invalid: no
	// process could join them.
	all := "+" + strings.Join(controllersV2(), " +")
	for _, dir := range []string{root, parent} {
		err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(all), 0)
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("cgroup %s contains processes, so cgroups below it cannot have limits: see cupola doctor", dir)
		}
		if err != nil {
			return fmt.Errorf("pass on the cgroup controllers %s: %w", all, err)
		}
	}
	return nil
}

// missing are the controllers that v2's root has not got.
func (t cgroupTree) missing() []string {
	have, _ := os.ReadFile(filepath.Join(t.roots[""], "cgroup.controllers")) // none if it cannot be read
	return slices.DeleteFunc(controllersV2(), func(c string) bool { return slices.Contains(strings.Fields(string(have)), c) })
}

// dir is where controller keeps the container's cgroup.
func (t cgroupTree) dir(controller, id string) string {
	if t.v2 {
		controller = ""
	}
	return filepath.Join(t.roots[controller], t.parent, id)
}

// dirs are all cgroups of a container, each once.
func (t cgroupTree) dirs(id string) []string {
	var all []string
	for controller := range t.roots {
		all = append(all, t.dir(controller, id))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// create makes and limits the container's v1 cgroups and opens their tasks
// files, in which the init writes itself. A thread that moves itself this way
// spares the RCU grace period of 7 to 15 ms that moving another process costs.
// On v2 libcontainer does it all, and create returns nothing.
func (t cgroupTree) create(id string, l Limits) ([]*os.File, error) {
	if t.v2 {
		return nil, nil
	}
	for _, dir := range t.dirs(id) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if err := t.limit(id, l); err != nil {
		return nil, err
	}
	return t.tasks(id)
}

// tasks opens the v1 files in which a process of the container enrols itself.
func (t cgroupTree) tasks(id string) ([]*os.File, error) {
	if t.v2 {
		return nil, nil
	}
	var files []*os.File
	for _, dir := range t.dirs(id) {
		f, err := os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0)
		if errors.Is(err, os.ErrNotExist) && dir == t.dir(freezer, id) {
			continue // an earlier version started the container
		}
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func (t cgroupTree) limit(id string, l Limits) error {
	type setting struct{ controller, file, value string }
	set := []setting{{"devices", "devices.deny", "a"}}
	for _, d := range allowedDevices() {
		minor := "*"
		if d.minor >= 0 {
			minor = strconv.FormatInt(d.minor, 10)
		}
		set = append(set, setting{"devices", "devices.allow", fmt.Sprintf("c %d:%s rwm", d.major, minor)})
	}
	if l.MemoryBytes > 0 {
		bytes := strconv.FormatInt(l.MemoryBytes, 10)
		set = append(set, setting{"memory", "memory.limit_in_bytes", bytes}, setting{"memory", "memory.memsw.limit_in_bytes", bytes})
	}
	if l.CPUShares > 0 {
		set = append(set, setting{"cpu", "cpu.shares", strconv.FormatUint(l.CPUShares, 10)})
	}
	if quota, period := quotaOf(l.CPUs); quota > 0 {
		set = append(set, setting{"cpu", "cpu.cfs_period_us", strconv.FormatUint(period, 10)}, setting{"cpu", "cpu.cfs_quota_us", strconv.FormatInt(quota, 10)})
	}
	if l.Pids > 0 {
		set = append(set, setting{"pids", "pids.max", strconv.FormatInt(l.Pids+inits, 10)})
	}
	for _, s := range set {
		if err := t.set(id, s.controller, s.file, s.value); err != nil {
			return err
		}
	}
	return nil
}

// quotaOf is how many microseconds of each period a container may run on so many
// processors; 0 is any. The kernel takes no less than a millisecond.
func quotaOf(cpus float64) (quota int64, period uint64) {
	const usual, least = 100_000, 1000
	if cpus <= 0 {
		return 0, usual
	}
	return max(int64(cpus*usual), least), usual
}

func (t cgroupTree) set(id, controller, file, value string) error {
	err := os.WriteFile(filepath.Join(t.dir(controller, id), file), []byte(value), 0)
	if file == "memory.memsw.limit_in_bytes" && errors.Is(err, os.ErrNotExist) {
		// The kernel does not account swap: forbid it to the container instead.
		err = os.WriteFile(filepath.Join(t.dir(controller, id), "memory.swappiness"), []byte("0"), 0)
	}
	if err != nil {
		return fmt.Errorf("set %s to %s: %w", file, value, err)
	}
	return nil
}

// forbidSwap sees to a container without a memory limit: one with a limit has
// the same for memory and swap together.
func (t cgroupTree) forbidSwap(id string, l Limits) error {
	if l.MemoryBytes > 0 {
		return nil
	}
	file := "memory.swappiness"
	if t.v2 {
		file = "memory.swap.max"
	}
	err := os.WriteFile(filepath.Join(t.dir("memory", id), file), []byte("0"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("forbid swap: %w", err)
	}
	return nil // a kernel that does not account swap has no such file
}

// list names every container that has a cgroup in any hierarchy.
func (t cgroupTree) list() []string {
	var ids []string
	for _, dir := range t.dirs("") {
		for _, name := range dirsIn(dir) {
			if strings.HasPrefix(name, groupMark) {
				ids = append(ids, dirsIn(filepath.Join(dir, name))...)
			} else {
				ids = append(ids, name)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// pids are the processes in any cgroup of the container.
func (t cgroupTree) pids(id string) []int {
	var all []int
	for _, dir := range t.dirs(id) {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(line))); err == nil && pid > 0 {
				all = append(all, pid)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// remove kills what is left in the container's cgroups and deletes them.
func (t cgroupTree) remove(ctx context.Context, id string) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		for _, pid := range t.pids(id) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		err := t.rmdir(id)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (t cgroupTree) rmdir(id string) error {
	var failed error
	for _, dir := range t.dirs(id) {
		if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
			failed = &os.PathError{Op: "rmdir", Path: dir, Err: err}
		}
	}
	return failed
}
