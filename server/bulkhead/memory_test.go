package bulkhead

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	const machine = "MemTotal:        8388608 kB\nMemFree: 1 kB\n" // 8 GiB
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing is known", nil, 0},
		{"half of the machine", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n"}, 4 << 30},
		{"v2, a limit above its own cgroup", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/cupola.slice/cupola.service\n",
			"sys/fs/cgroup/cupola.slice/cupola.service/memory.max": "max\n", "sys/fs/cgroup/cupola.slice/memory.max": "1000000000\n"}, 900_000_000},
		{"v1", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/1\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "2000000000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 1_800_000_000},
		{"v1 without a limit", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 4 << 30},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			name = filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryLimit(root); got != c.want {
			t.Errorf("%s: got %d; want %d", c.name, got, c.want)
		}
	}
}

func TestMemory(t *testing.T) {
	const machine = "MemTotal:        8388608 kB\nMemAvailable:    4194304 kB\n"
	for _, c := range []struct {
		name        string
		files       map[string]string
		total, free int64
	}{
		{"nothing is known", nil, 0, 0},
		{"a machine", map[string]string{"proc/meminfo": machine}, 8 << 30, 4 << 30},
		{"a container, v2", map[string]string{"proc/meminfo": machine, "sys/fs/cgroup/memory.max": "1073741824\n", "sys/fs/cgroup/memory.current": "300000000\n", "sys/fs/cgroup/memory.stat": "anon 1\ninactive_file 100000000\n"}, 1 << 30, 1<<30 - 200_000_000},
		{"a container, v1", map[string]string{"proc/meminfo": machine, "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "2000000000\n"}, 1 << 30, 0},
		{"without a limit, v1", map[string]string{"proc/meminfo": machine, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8 << 30, 4 << 30},
		{"without a limit, v2", map[string]string{"proc/meminfo": machine, "sys/fs/cgroup/memory.max": "max\n"}, 8 << 30, 4 << 30},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			name = filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if total, free := Memory(root); total != c.total || free != c.free {
			t.Errorf("%s: got %d, %d; want %d, %d", c.name, total, free, c.total, c.free)
		}
	}
}
