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
	for _, dir := range []string{root, parent} {
		if err := passOn(dir); err != nil {
			return err
		}
	}
	return nil
}

// passOn gives the cgroups below v2's dir the controllers. All are enabled at once: if
// memory is refused because the root has processes, cpu alone would succeed, and make
// the children domain-invalid: no process could join them.
func passOn(dir string) error {
	all := "+" + strings.Join(controllersV2(), " +")
	err := overwrite(filepath.Join(dir, "cgroup.subtree_control"), all)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("cgroup %s contains processes, so cgroups below it cannot have limits: see cupola doctor", dir)
	}
	if err != nil {
		return fmt.Errorf("pass on the cgroup controllers %s: %w", all, err)
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

// create makes and limits the container's cgroups and opens what tasks does.
func (t cgroupTree) create(id string, l Limits) ([]*os.File, error) {
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

// tasks opens the v1 files in which a process of the container enrols itself. A
// thread that moves itself this way spares the RCU grace period of 7 to 15 ms that
// moving another process costs. On v2 there are none: the launcher makes the process
// in its cgroup, and libcontainer moves it.
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

// setting is a value for a file of a container's cgroup.
type setting struct {
	controller, file, value string
	optional                bool // kernels that do not account swap have no such file
}

func (t cgroupTree) limit(id string, l Limits) error {
	all := limitsV1(l)
	if t.v2 {
		all = limitsV2(l)
	}
	for _, s := range all {
		if err := t.set(id, s.controller, s.file, s.value); err != nil && !(s.optional && errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	return nil
}

func limitsV1(l Limits) []setting {
	set := []setting{{controller: "devices", file: "devices.deny", value: "a"}}
	for _, d := range allowedDevices() {
		minor := "*"
		if d.minor >= 0 {
			minor = strconv.FormatInt(d.minor, 10)
		}
		set = append(set, setting{controller: "devices", file: "devices.allow", value: fmt.Sprintf("c %d:%s rwm", d.major, minor)})
	}
	if l.MemoryBytes > 0 {
		bytes := strconv.FormatInt(l.MemoryBytes, 10)
		set = append(set, setting{controller: "memory", file: "memory.limit_in_bytes", value: bytes}, setting{controller: "memory", file: "memory.memsw.limit_in_bytes", value: bytes})
	} else {
		set = append(set, setting{controller: "memory", file: "memory.swappiness", value: "0", optional: true})
	}
	if l.CPUShares > 0 {
		set = append(set, setting{controller: "cpu", file: "cpu.shares", value: strconv.FormatUint(l.CPUShares, 10)})
	}
	if quota, period := quotaOf(l.CPUs); quota > 0 {
		set = append(set, setting{controller: "cpu", file: "cpu.cfs_period_us", value: strconv.FormatUint(period, 10)},
			setting{controller: "cpu", file: "cpu.cfs_quota_us", value: strconv.FormatInt(quota, 10)})
	}
	return append(set, pidsLimit(l)...)
}

// limitsV2 has no devices: the filter of the parent is for all containers.
func limitsV2(l Limits) []setting {
	set := []setting{{file: "memory.swap.max", value: "0", optional: true}}
	if l.MemoryBytes > 0 {
		set = append(set, setting{file: "memory.max", value: strconv.FormatInt(l.MemoryBytes, 10)})
	}
	if l.CPUShares > 0 {
		set = append(set, setting{file: "cpu.weight", value: strconv.FormatUint(weightOf(l.CPUShares), 10)})
	}
	if quota, period := quotaOf(l.CPUs); quota > 0 {
		set = append(set, setting{file: "cpu.max", value: fmt.Sprint(quota, period)})
	}
	return append(set, pidsLimit(l)...)
}

func pidsLimit(l Limits) []setting {
	if l.Pids <= 0 {
		return nil
	}
	return []setting{{controller: "pids", file: "pids.max", value: strconv.FormatInt(l.Pids+inits, 10)}}
}

// weightOf is v2's weight for the shares of v1, in proportion: libcontainer's own
// formula is a curve, on which a container with a hundredth of another's shares
// weighs a twenty-fifth of it.
func weightOf(shares uint64) uint64 {
	const ordinaryShares, ordinaryWeight, highest = 1024, 100, 10000
	return min(max((shares*ordinaryWeight+ordinaryShares/2)/ordinaryShares, 1), highest)
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
	err := overwrite(filepath.Join(t.dir(controller, id), file), value)
	if file == "memory.memsw.limit_in_bytes" && errors.Is(err, os.ErrNotExist) {
		// The kernel does not account swap: forbid it to the container instead.
		err = overwrite(filepath.Join(t.dir(controller, id), "memory.swappiness"), "0")
	}
	if err != nil {
		return fmt.Errorf("set %s to %s: %w", file, value, err)
	}
	return nil
}

// overwrite writes to an existing file. A missing one is ErrNotExist: with O_CREAT, the
// kernel would answer EACCES in a cgroup.
func overwrite(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
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
