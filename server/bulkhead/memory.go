package bulkhead

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// oomScore makes the kernel end almost anything rather than the daemon when the
// machine's memory is used up: containers, which have a higher score than other
// programs, end first. The unit of 'cupola install' sets a lower one.
const oomScore = -500

// ProtectMemory sets the daemon's own limits: when the collector runs, and its
// place among those that the kernel ends for memory. What is not
// permitted stays as it is.
func ProtectMemory(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit := memoryLimit("/"); limit > 0 {
			debug.SetMemoryLimit(limit)
		}
	}
	if os.Getenv("GOGC") == "" {
		adjustCollector()
	}
	const file = "/proc/self/oom_score_adj"
	have, err := os.ReadFile(file)
	if err == nil && string(bytes.TrimSpace(have)) == "0" { // no other was chosen
		err = os.WriteFile(file, []byte(strconv.Itoa(oomScore)), 0)
	}
	if err != nil {
		log.Info("the OOM score of the daemon was not lowered: the kernel may kill it when memory runs out", "err", err)
	}
}

// memoryLimit is what the daemon's heap should stay below, in bytes: nine tenths
// of the smallest limit of its cgroups, or half of the machine's memory where
// there is none or that is less. 0: unknown. root is "/" but in tests.
func memoryLimit(root string) int64 {
	limit := int64(math.MaxInt64)
	if total := meminfo(root, "MemTotal:"); total > 0 {
		limit = total / 2
	}
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, c := range strings.Split(parts[1], ",") {
			switch c {
			case "":
				limit = min(limit, cgroupLimit(filepath.Join(root, "sys/fs/cgroup"), parts[2], "memory.max"))
			case "memory":
				limit = min(limit, cgroupLimit(filepath.Join(root, "sys/fs/cgroup/memory"), parts[2], "memory.limit_in_bytes"))
			}
		}
	}
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}

// cgroupLimit is nine tenths of the smallest limit of a cgroup and those above.
func cgroupLimit(base, path, file string) int64 {
	limit := int64(math.MaxInt64)
	for dir := filepath.Clean("/" + path); ; dir = filepath.Dir(dir) {
		if text, err := os.ReadFile(filepath.Join(base, dir, file)); err == nil {
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 { // v2 says "max" for none
				limit = min(limit, n/10*9)
			}
		}
		if dir == "/" {
			return limit
		}
	}
}

// Memory is what containers can have together, in bytes, and what of it is free: the
// machine's memory, or, where this machine is a container, the limit of the cgroup in
// which containers' cgroups are made. Zero is unknown. root is "/" but in tests.
func Memory(root string) (total, free int64) {
	total, free = meminfo(root, "MemTotal:"), meminfo(root, "MemAvailable:")
	for _, at := range []struct{ dir, limit, use, cache string }{
		{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
		{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
	} {
		dir := filepath.Join(root, at.dir)
		limit := number(filepath.Join(dir, at.limit))
		if limit <= 0 || total > 0 && limit >= total {
			continue
		}
		total = limit
		used := number(filepath.Join(dir, at.use)) - field(filepath.Join(dir, "memory.stat"), at.cache)
		free = min(free, max(0, limit-used))
	}
	return total, free
}

// number reads a file of one number; 0 for any other.
func number(file string) int64 {
	text, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64) // v2 says "max" for none
	return n
}

// field is a number behind a name in a file of such lines; 0 if it is not there.
func field(file, name string) int64 {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			return n
		}
	}
	return 0
}

// meminfo is a field of meminfo in bytes.
func meminfo(root, name string) int64 { return field(filepath.Join(root, "proc/meminfo"), name) << 10 }
