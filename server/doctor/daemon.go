package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Daemon is a running cupola daemon.
type Daemon struct {
	PID     int
	DataDir string // as that daemon names it
}

// daemons lists the daemons of the machine that the caller may see: root sees
// all. A daemon holds a lock on the file "lock" of its data directory for as
// long as it lives, and the file says how it names the directory.
func (m *machine) daemons() (all []Daemon) {
	files, _ := filepath.Glob(m.path("proc/[0-9]*/fd/*")) // the pattern is well-formed
	for _, name := range files {
		to, err := os.Readlink(name)
		if err != nil || filepath.Base(to) != "lock" {
			continue
		}
		info, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(name)), "fdinfo", filepath.Base(name)))
		if err != nil || !strings.Contains(string(info), "FLOCK") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(name))))
		all = append(all, Daemon{PID: pid, DataDir: m.daemonPath(filepath.Dir(to))})
	}
	return all
}

// daemonPath returns the name that the last daemon used for its data directory, which
// may contain symbolic links.
func (m *machine) daemonPath(dir string) string {
	name, _, _ := strings.Cut(m.read(filepath.Join(dir, "lock")), "\n")
	if filepath.IsAbs(name) {
		return name
	}
	return dir
}

// daemon returns the running daemon of a data directory.
func (m *machine) daemon(dataDir string) (Daemon, bool) {
	for _, d := range m.daemons() {
		if same(d.DataDir, dataDir) {
			return d, true
		}
	}
	return Daemon{}, false
}

// same reports whether two names refer to the same directory.
func same(a, b string) bool {
	if a == b {
		return true
	}
	sa, err := os.Stat(a)
	if err != nil {
		return false
	}
	sb, err := os.Stat(b)
	return err == nil && os.SameFile(sa, sb)
}

// DaemonOf returns the running daemon of a data directory. Only root always
// sees it.
func DaemonOf(dataDir string) (Daemon, bool) { return thisMachine(Options{}).daemon(dataDir) }

// Daemons lists the running daemons that the caller may see.
func Daemons() []Daemon { return thisMachine(Options{}).daemons() }
