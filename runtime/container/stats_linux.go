package container

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stats reads the cgroups of a container.
func (t cgroupTree) stats(id string) (Stats, error) {
	if t.v2 {
		return t.statsV2(id)
	}
	var s Stats
	cpu, err := t.number("cpuacct", id, "cpuacct.usage")
	used, err2 := t.number("memory", id, "memory.usage_in_bytes")
	limit, err3 := t.number("memory", id, "memory.limit_in_bytes")
	pids, err4 := t.number("pids", id, "pids.current")
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return s, err
	}
	const unlimited = 1 << 62 // the kernel says the largest page-aligned number
	if limit < unlimited {
		s.MemoryLimitBytes = limit
	}
	s.CPU, s.Pids = time.Duration(cpu), pids
	s.PeakBytes, _ = t.number("memory", id, "memory.max_usage_in_bytes") // only for people
	s.MemoryBytes = used - min(used, t.key("memory", id, "memory.stat", "total_inactive_file"))
	return s, nil
}

func (t cgroupTree) statsV2(id string) (Stats, error) {
	var s Stats
	used, err := t.number("", id, "memory.current")
	limit, err2 := t.number("", id, "memory.max")
	pids, err3 := t.number("", id, "pids.current")
	if err := errors.Join(err, err2, err3); err != nil {
		return s, err
	}
	s.CPU = time.Duration(t.key("", id, "cpu.stat", "usage_usec")) * time.Microsecond
	s.MemoryBytes = used - min(used, t.key("", id, "memory.stat", "inactive_file"))
	s.MemoryLimitBytes, s.Pids = limit, pids
	s.PeakBytes, _ = t.number("", id, "memory.peak") // only for people
	return s, nil
}

// oomKilled reports whether the kernel has killed a process in the cgroup for memory.
func (t cgroupTree) oomKilled(id string) bool {
	if t.v2 {
		return t.key("", id, "memory.events", "oom_kill") > 0
	}
	return t.key("memory", id, "memory.oom_control", "oom_kill") > 0
}

// number reads a file that holds one number; "max" is 0.
func (t cgroupTree) number(controller, id, file string) (uint64, error) {
	data, err := os.ReadFile(filepath.Join(t.dir(controller, id), file))
	if err != nil {
		return 0, err
	}
	text := strings.TrimSpace(string(data))
	if text == "max" {
		return 0, nil
	}
	return strconv.ParseUint(text, 10, 64)
}

// key reads one value of a file of "key value" lines, 0 if it is not there.
func (t cgroupTree) key(controller, id, file, key string) uint64 {
	data, err := os.ReadFile(filepath.Join(t.dir(controller, id), file))
	if err != nil {
		return 0
	}
	return parseKey(data, key)
}

func parseKey(data []byte, key string) uint64 {
	for line := range bytes.Lines(data) {
		name, value, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if ok && string(name) == key {
			n, _ := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
			return n
		}
	}
	return 0
}
