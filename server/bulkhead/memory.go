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

// ProtectMemory sets the daemon's own limits: when the collector works harder,
// and its place among those that the kernel ends for memory. What is not
// permitted stays as it is.
func ProtectMemory(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit := memoryLimit("/"); limit > 0 {
			debug.SetMemoryLimit(limit)
		}
	}
	const file = "/proc/self/oom_score_adj"
	have, err := os.ReadFile(file)
	if err == nil && string(bytes.TrimSpace(have)) == "0" { // no other was chosen
		err = os.WriteFile(file, []byte(strconv.Itoa(oomScore)), 0)
	}
	if err != nil {
		log.Info("the daemon is as likely as others to be ended when memory is used up", "err", err)
	}
}

// memoryLimit is what the daemon's heap should stay below, in bytes: nine tenths
// of the smallest limit of its cgroups, or half of the machine's memory where
// there is none or that is less. 0: unknown. root is "/" but in tests.
func memoryLimit(root string) int64 {
	limit := int64(math.MaxInt64)
	if total := memTotal(root); total > 0 {
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

func memTotal(root string) int64 {
	text, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kb, _ := strconv.ParseInt(fields[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}
