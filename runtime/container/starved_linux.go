package container

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Starved is how long the container's processes have been ready to run so far, and waited for a processor. It is the kernel's pressure stall
// information of the container's cgroup, which counts each moment once. On cgroup v1, or without PSI, it is the sum of what its threads waited,
// without those that have ended: it may shrink, and grow faster than time passes. It is 0 where the kernel tells neither.
func (e *Engine) Starved(id string) time.Duration {
	if e.tree.v2 {
		if d, ok := readPressure(filepath.Join(e.tree.dir("", e.place(id)), "cpu.pressure")); ok {
			return d
		}
	}
	var sum time.Duration
	for _, pid := range e.tree.pids(e.place(id)) {
		sum += waited(fmt.Sprintf("/proc/%d/task", pid))
	}
	return sum
}

// readPressure reads for how long at least one thread of a cgroup has waited.
func readPressure(file string) (time.Duration, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	return parsePressure(text)
}

// parsePressure reads the total of the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", in µs.
func parsePressure(text []byte) (time.Duration, bool) {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("some "))
		if !ok {
			continue
		}
		_, total, _ := bytes.Cut(rest, []byte("total="))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(total)), 10, 64)
		return time.Duration(n) * time.Microsecond, err == nil
	}
	return 0, false
}

// waited is how long the threads of a process have waited for a processor.
func waited(tasks string) (sum time.Duration) {
	entries, _ := os.ReadDir(tasks) // it may have ended
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(tasks, e.Name(), "schedstat"))
		if err != nil {
			continue
		}
		if fields := bytes.Fields(text); len(fields) == 3 { // ns on a processor, ns waiting for one, slices
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			sum += time.Duration(n)
		}
	}
	return sum
}
