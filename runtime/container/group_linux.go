package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// groupMark begins the name of a group's cgroup; no ID of a container holds it.
const groupMark = "cell@"

// placeOf is where, below the parent, the cgroup of a container of a group is.
func placeOf(group, id string) string {
	if group == "" {
		return id
	}
	return filepath.Join(groupMark+group, id)
}

// place is where the container's cgroups are, also of one that another Engine
// started.
func (e *Engine) place(id string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at, ok := e.places[id]; ok {
		return at
	}
	at, found := e.tree.find(id)
	if found {
		e.places[id] = at
	}
	return at
}

func (e *Engine) setPlace(group, id string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.places[id] = placeOf(group, id)
	return e.places[id]
}

// find looks for a container's cgroup among the groups.
func (t cgroupTree) find(id string) (place string, found bool) {
	for _, dir := range t.dirs("") {
		if _, err := os.Stat(filepath.Join(dir, id)); err == nil {
			return id, true
		}
		for _, group := range groupsIn(dir) {
			if _, err := os.Stat(filepath.Join(dir, group, id)); err == nil {
				return filepath.Join(group, id), true
			}
		}
	}
	return id, false
}

// groupsIn are the names of groups' cgroups in a directory.
func groupsIn(dir string) (names []string) {
	for _, name := range dirsIn(dir) {
		if strings.HasPrefix(name, groupMark) {
			names = append(names, name)
		}
	}
	return names
}

func dirsIn(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // one that is gone holds nothing
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// allGroups are the names of the groups' cgroups in any hierarchy.
func (t cgroupTree) allGroups() (names []string) {
	for _, dir := range t.dirs("") {
		names = append(names, groupsIn(dir)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// setGroups creates the groups with their limits, and removes other groups if
// they are empty.
func (e *Engine) setGroups(groups []Group) error {
	wanted := map[string]bool{}
	for _, g := range groups {
		if !validID(g.Name) {
			return fmt.Errorf("group %q: bad name", g.Name)
		}
		wanted[groupMark+g.Name] = true
		if err := e.setGroup(g); err != nil {
			return fmt.Errorf("make cgroup of group %s: %w", g.Name, err)
		}
	}
	for _, name := range e.tree.allGroups() {
		if !wanted[name] {
			_ = e.tree.rmdir(name) // it still holds containers
		}
	}
	return nil
}

func (e *Engine) setGroup(g Group) error {
	place := groupMark + g.Name
	for _, dir := range e.tree.dirs(place) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if e.tree.v2 {
		return e.setGroupV2(place, g)
	}
	// Kernels before 5.11 count a group's memory with its parent only on request.
	_ = overwrite(filepath.Join(e.tree.dir("memory", place), "memory.use_hierarchy"), "1")
	if g.CPUShares > 0 {
		if err := e.tree.set(place, "cpu", "cpu.shares", strconv.FormatUint(g.CPUShares, 10)); err != nil {
			return err
		}
	}
	return e.setGroupMemory(place, g)
}

// setGroupMemory limits memory and swap together. A limit below what is used
// now cannot be: what runs is not ended for it.
func (e *Engine) setGroupMemory(place string, g Group) error {
	write := func(file string, n int64) error {
		return overwrite(filepath.Join(e.tree.dir("memory", place), file), strconv.FormatInt(n, 10))
	}
	const memsw = "memory.memsw.limit_in_bytes"
	if err := write(memsw, -1); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	limit := g.MemoryBytes
	if limit <= 0 {
		limit = -1
	}
	err := write("memory.limit_in_bytes", limit)
	if errors.Is(err, unix.EBUSY) {
		e.log.Warn("cell uses more memory than it is to have; its limit is set at the next start", "cell", g.Name, "memory_bytes", limit)
		return nil
	}
	if err != nil {
		return err
	}
	if err := write(memsw, limit); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// setGroupV2 is setGroup in the unified hierarchy, where the kernel would kill processes if
// a limit were below the usage.
func (e *Engine) setGroupV2(place string, g Group) error {
	write := func(file, value string) error { return overwrite(filepath.Join(e.tree.dir("", place), file), value) }
	if err := passOn(e.tree.dir("", place)); err != nil {
		return err
	}
	if g.CPUShares > 0 {
		if err := write("cpu.weight", strconv.FormatUint(weightOf(g.CPUShares), 10)); err != nil {
			return err
		}
	}
	limit := "max"
	if g.MemoryBytes > 0 {
		used, err := e.tree.number("", place, "memory.current")
		if err != nil {
			return err
		}
		if int64(used) > g.MemoryBytes {
			e.log.Warn("cell uses more memory than it is to have; its limit is set at the next start", "cell", g.Name, "memory_bytes", g.MemoryBytes)
		}
		limit = strconv.FormatInt(max(int64(used), g.MemoryBytes), 10)
	}
	if err := write("memory.swap.max", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return write("memory.max", limit)
}
