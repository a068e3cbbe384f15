package cell

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/executable"
	"cupola/runtime/lrp"
)

// exitHint says, for the app's developer, why a process of an app ended: what it needed and did not have. It is "" where the cell
// knows no more than Diego says, and for clients of the BBS.
func (b *build) exitHint(r *lrp.Run, source string, x container.Exit) string {
	switch {
	case b.spec.Domain != lrp.DomainApps || !x.Known:
		return ""
	case x.OOM:
		return b.memoryHint()
	case strings.HasPrefix(source, "APP"):
		if hint := b.commandHint(r, b.lastErrors(source).all(), x.Code); hint != "" {
			return lrp.CausePrefix + hint
		}
	}
	return ""
}

// commandHint says why a command could not be executed, where the exit code is a shell's for that. The shell of stacks without one
// ends with 1 when the kernel refuses a file that it found.
func (b *build) commandHint(r *lrp.Run, last []string, code int) string {
	ours := code == 1 && len(last) > 0 && strings.HasPrefix(last[len(last)-1], "fork/exec ")
	if code != 126 && code != 127 && !ours {
		return ""
	}
	return b.files(r).Explain(last)
}

// memoryHint says how much memory a container that ran out of it was given, and used.
func (b *build) memoryHint() string {
	const mb = 1 << 20
	text := fmt.Sprintf("The app ran out of memory: its limit is %dM", b.spec.MemoryMB)
	if used, err := b.cell.cfg.Containers.Stats(b.guid()); err == nil && used.PeakBytes > 0 {
		text += fmt.Sprintf(", its peak was %dM", (used.PeakBytes+mb/2)/mb)
	}
	return text + "; give it more with 'cf scale -m'"
}

// files are those of the container, as a process of it sees them. The launcher starts a command of a buildpack's app in the app's directory.
func (b *build) files(r *lrp.Run) executable.Files {
	f := executable.Files{Open: func(name string) (*os.File, error) { return b.cell.cfg.RootFS.Find(b.guid(), name) }}
	u, err := b.lookUp(r.User)
	if err != nil {
		u = vcap
	}
	f.Dir, f.Image = u.path(r.Dir), r.Path != contract.Launcher
	if r.Path == contract.Launcher && len(r.Args) > 1 {
		f.Dir = path.Join(contract.Home, r.Args[0])
		f.Command = r.Args[1]
	}
	for _, v := range b.environment(u, r) {
		if list, found := strings.CutPrefix(v, "PATH="); found {
			f.Path = filepath.SplitList(list)
		}
	}
	return f
}

// What is kept of what a process writes to its standard error.
const (
	keptLines  = 6
	keptLength = 300 // bytes
)

// lastLines are the last lines of one process.
type lastLines struct {
	mu    sync.Mutex
	lines [keptLines][]byte
	next  int
}

func (l *lastLines) add(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.next % keptLines
	l.lines[at] = append(l.lines[at][:0], line[:min(len(line), keptLength)]...)
	l.next++
}

// all are the lines, the oldest first.
func (l *lastLines) all() (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := max(0, l.next-keptLines); n < l.next; n++ {
		lines = append(lines, string(l.lines[n%keptLines]))
	}
	return lines
}

// lastErrors are the last lines that processes of a source wrote to their standard error.
func (i *instance) lastErrors(source string) *lastLines {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.errors == nil {
		i.errors = map[string]*lastLines{}
	}
	if i.errors[source] == nil {
		i.errors[source] = &lastLines{}
	}
	return i.errors[source]
}
