package machine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// read returns a file of the kernel without the blanks around, "" where there is
// none.
func (m *Machine) read(name string) string {
	text, err := os.ReadFile(filepath.Join(m.root, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// ticks are how long all CPUs together did something, and nothing.
type ticks struct{ all, idle uint64 }

// ticks reads the first line of /proc/stat: user, nice, system, idle, iowait, irq,
// softirq and steal.
func (m *Machine) ticks() (t ticks) {
	line, _, _ := strings.Cut(m.read("proc/stat"), "\n")
	fields := strings.Fields(line)
	for i, f := range fields[min(1, len(fields)):min(9, len(fields))] {
		n, _ := strconv.ParseUint(f, 10, 64)
		t.all += n
		if i == 3 || i == 4 {
			t.idle += n
		}
	}
	return t
}

// load is empty where the kernel does not tell.
func (m *Machine) load() []float64 {
	load := []float64{}
	fields := strings.Fields(m.read("proc/loadavg"))
	for _, f := range fields[:min(3, len(fields))] {
		n, _ := strconv.ParseFloat(f, 64)
		load = append(load, n)
	}
	return load
}

// cgroup is the version of the hierarchies that limit containers.
func (m *Machine) cgroup() int {
	if _, err := os.Stat(filepath.Join(m.root, "sys/fs/cgroup/cgroup.controllers")); err == nil {
		return 2
	}
	return 1
}

func (m *Machine) memory() Memory {
	of := func(file, field string) uint64 {
		for line := range strings.Lines(m.read(file)) {
			if name, value, _ := strings.Cut(line, ":"); name == field {
				kb, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
				return kb << 10
			}
		}
		return 0
	}
	const all = "proc/meminfo"
	return Memory{Total: of(all, "MemTotal"), Available: of(all, "MemAvailable"), SwapTotal: of(all, "SwapTotal"), SwapFree: of(all, "SwapFree"),
		Daemon: of("proc/self/status", "VmRSS")}
}

// Pressure is how long something waited for a resource.
type Pressure struct {
	Kind   string  `json:"kind"`  // some: at least one task waited; full: all did
	Avg10  float64 `json:"avg10"` // percent of the last 10 seconds
	Avg60  float64 `json:"avg60"`
	Avg300 float64 `json:"avg300"`
}

// pressures reads the kernel's pressure stall information.
func (m *Machine) pressures() map[string][]Pressure {
	all := map[string][]Pressure{}
	for _, resource := range []string{"cpu", "memory", "io"} {
		for line := range strings.Lines(m.read("proc/pressure/" + resource)) {
			all[resource] = append(all[resource], parsePressure(line))
		}
	}
	return all
}

// parsePressure reads a line like "some avg10=0.00 avg60=0.00 avg300=0.00 total=0".
func parsePressure(line string) (p Pressure) {
	for n, field := range strings.Fields(line) {
		if n == 0 {
			p.Kind = field
			continue
		}
		name, text, _ := strings.Cut(field, "=")
		value, _ := strconv.ParseFloat(text, 64)
		switch name {
		case "avg10":
			p.Avg10 = value
		case "avg60":
			p.Avg60 = value
		case "avg300":
			p.Avg300 = value
		}
	}
	return p
}

// openFiles counts the daemon's descriptors, without that of the directory itself.
func (m *Machine) openFiles() int {
	entries, err := os.ReadDir(filepath.Join(m.root, "proc/self/fd"))
	if err != nil {
		return 0
	}
	return len(entries) - 1
}
