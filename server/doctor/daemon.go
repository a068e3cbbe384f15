package doctor

import (
	"os"
	"path/filepath"
	"slices"
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
func (h host) daemons() (all []Daemon) {
	for _, pid := range h.locking() {
		files, _ := os.ReadDir(h.path(filepath.Join("proc", pid, "fd"))) // one that ended has none
		for _, f := range files {
			to, err := os.Readlink(h.path(filepath.Join("proc", pid, "fd", f.Name())))
			if err != nil || filepath.Base(to) != "lock" || !strings.Contains(h.read(filepath.Join("proc", pid, "fdinfo", f.Name())), "FLOCK") {
				continue
			}
			n, _ := strconv.Atoi(pid)
			all = append(all, Daemon{PID: n, DataDir: h.daemonPath(filepath.Dir(to))})
		}
	}
	return all
}

// locking lists the processes that hold a lock of flock(2), by /proc/locks: to
// look at the files of all processes takes a hundred times as long.
func (h host) locking() (pids []string) {
	for line := range strings.Lines(h.read("proc/locks")) {
		// 1: FLOCK  ADVISORY  WRITE 742 fd:01:1311 0 EOF; one that waits has an arrow before its kind.
		if f := strings.Fields(line); len(f) > 4 && f[1] == "FLOCK" {
			pids = append(pids, f[4])
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// daemonPath returns the name that the last daemon used for its data directory, which
// may contain symbolic links.
func (h host) daemonPath(dir string) string {
	name, _, _ := strings.Cut(h.read(filepath.Join(dir, "lock")), "\n")
	if filepath.IsAbs(name) {
		return name
	}
	return dir
}

// daemon returns the running daemon of a data directory.
func (h host) daemon(dataDir string) (Daemon, bool) {
	for _, d := range h.daemons() {
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
