package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// host is a machine as its files show it: it knows nothing of cupola's options.
type host struct {
	root string // "/" but in tests
}

// path returns the place of a file below the root.
func (h host) path(name string) string { return filepath.Join(h.root, name) }

// read returns a file without the blanks around, "" where there is none.
func (h host) read(name string) string {
	b, err := os.ReadFile(h.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (h host) exists(name string) bool {
	_, err := os.Stat(h.path(name))
	return err == nil
}

func (h host) writable(name string) bool {
	f, err := os.OpenFile(h.path(name), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// write overwrites an existing file.
func (h host) write(name, text string) error {
	f, err := os.OpenFile(h.path(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (h host) any(dir, pattern string) bool {
	found, _ := filepath.Glob(h.path(filepath.Join(dir, pattern))) // the patterns are well-formed
	return len(found) > 0
}

func (h host) hierarchies() hierarchies { return parseHierarchies(h.read("proc/self/mountinfo")) }

// wsl is the version of the Windows Subsystem for Linux that this machine is; 0 if it
// is none. Its kernels name Microsoft, version 1 with a capital letter and no more.
func (h host) wsl() int {
	text := h.read("proc/version")
	switch {
	case !strings.Contains(strings.ToLower(text), "microsoft"):
		return 0
	case strings.Contains(text, "WSL2"), strings.Contains(text, "microsoft-standard"):
		return 2
	}
	return 1
}

// fileSystemOf is the type of the file system that a path is on.
func (h host) fileSystemOf(path string) (kind string) {
	best := -1
	for line := range strings.Lines(h.read("proc/self/mountinfo")) {
		left, right, ok := strings.Cut(line, " - ")
		at, what := strings.Fields(left), strings.Fields(right)
		if !ok || len(at) < 5 || len(what) < 1 {
			continue
		}
		point := at[4]
		if within := path == point || point == "/" || strings.HasPrefix(path, point+"/"); within && len(point) >= best {
			best, kind = len(point), what[0]
		}
	}
	return kind
}

// container is the engine whose container this is; "" if it is none.
func (h host) container() string {
	for line := range strings.SplitSeq(h.read("proc/1/environ"), "\x00") {
		if kind, ok := strings.CutPrefix(line, "container="); ok && kind != "" {
			return kind
		}
	}
	switch {
	case h.exists(".dockerenv"):
		return "docker"
	case h.exists("run/.containerenv"):
		return "podman"
	case h.exists("dev/lxd/sock"), h.exists("dev/incus/sock"):
		return "lxc"
	}
	return h.read("run/systemd/container")
}

// mappedIDs are how many user IDs this user namespace has; "" if it has all.
func (h host) mappedIDs() string {
	lines := strings.Split(h.read("proc/self/uid_map"), "\n")
	fields := strings.Fields(lines[0])
	if len(fields) != 3 || len(lines) == 1 && fields[2] == "4294967295" {
		return ""
	}
	var counts []string
	for _, l := range lines {
		if f := strings.Fields(l); len(f) == 3 {
			counts = append(counts, f[2])
		}
	}
	return strings.Join(counts, " + ")
}

// closed are the places that an engine opens in privileged containers alone.
func (h host) closed() (missing []string) {
	if h.exists("proc/sys/net/ipv4/ip_forward") && !h.writable("proc/sys/net/ipv4/ip_forward") {
		missing = append(missing, "/proc/sys")
	}
	groups := h.hierarchies()
	root := groups.unified
	if root == "" {
		root = groups.v1["pids"]
	}
	if root != "" && h.readOnly(root) {
		missing = append(missing, root)
	}
	return missing
}

// readOnly reports whether something is mounted read-only at a place.
func (h host) readOnly(point string) (is bool) {
	for line := range strings.Lines(h.read("proc/self/mountinfo")) {
		f := strings.Fields(line)
		if len(f) > 5 && f[4] == point {
			is = strings.HasPrefix(f[5]+",", "ro,")
		}
	}
	return is
}

// listener returns the pid of the process that listens on a TCP port, or 0.
func (h host) listener(port int) int {
	sockets := map[string]bool{}
	for _, name := range []string{"proc/net/tcp", "proc/net/tcp6"} {
		for _, inode := range listening(h.read(name), port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return 0
	}
	files, _ := filepath.Glob(h.path("proc/[0-9]*/fd/*"))
	for _, name := range files {
		if to, err := os.Readlink(name); err == nil && sockets[to] {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(name))))
			return pid
		}
	}
	return 0
}
