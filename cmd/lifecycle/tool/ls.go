package tool

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
)

// lister is one call of ls, which prints a name a line and knows -a -A -l -d
// -h -R -F -p -r -t -S and, for what it does anyhow, -1.
type lister struct {
	options
	streams
	failed bool
}

func ls(s streams, o options, names []string) error {
	l := &lister{options: o, streams: s}
	if len(names) == 0 {
		names = []string{"."}
	}
	var dirs []string
	var alone []entry
	for _, name := range names {
		e, err := l.stat(name, name)
		switch {
		case err != nil:
			l.report(err)
		case e.info.IsDir() && !o.has('d'):
			dirs = append(dirs, name)
		default:
			alone = append(alone, e)
		}
	}
	l.print(alone)
	for i, dir := range dirs {
		l.directory(dir, len(names) > 1 || o.has('R'), i > 0 || len(alone) > 0)
	}
	if l.failed {
		return status(2)
	}
	return nil
}

// entry is a file with the name to print for it.
type entry struct {
	name, path string
	info       fs.FileInfo
}

func (l *lister) report(err error) {
	fmt.Fprintf(l.err, "ls: %v\n", err)
	l.failed = true
}

// stat follows an operand that is a link to a directory, as ls does.
func (l *lister) stat(name, path string) (entry, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 && !l.has('l') && !l.has('d') {
		if target, terr := os.Stat(path); terr == nil && target.IsDir() {
			info = target
		}
	}
	return entry{name, path, info}, err
}

func (l *lister) directory(dir string, titled, apart bool) {
	children, err := os.ReadDir(dir)
	if err != nil {
		l.report(err)
		return
	}
	var all []entry
	if l.has('a') {
		for _, name := range []string{".", ".."} {
			if e, err := l.stat(name, filepath.Join(dir, name)); err == nil {
				all = append(all, e)
			}
		}
	}
	for _, child := range children {
		if strings.HasPrefix(child.Name(), ".") && !l.has('a') && !l.has('A') {
			continue
		}
		if info, err := child.Info(); err == nil {
			all = append(all, entry{child.Name(), filepath.Join(dir, child.Name()), info})
		}
	}
	if apart {
		fmt.Fprintln(l.out)
	}
	if titled {
		fmt.Fprintln(l.out, dir+":")
	}
	l.print(all)
	for _, e := range all {
		if l.has('R') && e.info.IsDir() && e.name != "." && e.name != ".." {
			l.directory(e.path, true, true)
		}
	}
}

func (l *lister) print(all []entry) {
	slices.SortStableFunc(all, func(a, b entry) int {
		switch {
		case l.has('t'):
			return b.info.ModTime().Compare(a.info.ModTime())
		case l.has('S'):
			return int(max(-1, min(1, b.info.Size()-a.info.Size())))
		}
		return strings.Compare(a.name, b.name)
	})
	if l.has('r') {
		slices.Reverse(all)
	}
	w := tabwriter.NewWriter(l.out, 0, 8, 1, ' ', 0)
	for _, e := range all {
		name := e.name + l.mark(e.info)
		if !l.has('l') && !l.has('n') {
			fmt.Fprintln(l.out, name)
			continue
		}
		if target, err := os.Readlink(e.path); err == nil {
			name += " -> " + target
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", modeText(e.info.Mode()), l.owner(e.info), l.size(e.info.Size()), e.info.ModTime().Format("Jan _2 15:04"), name)
	}
	_ = w.Flush()
}

// mark is the character that -F and -p put after a name.
func (l *lister) mark(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case !l.has('F') && !l.has('p'):
	case mode.IsDir():
		return "/"
	case !l.has('F'):
	case mode&fs.ModeSymlink != 0:
		return "@"
	case mode.IsRegular() && mode&0o111 != 0:
		return "*"
	}
	return ""
}

func (l *lister) owner(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "?\t?\t?"
	}
	uid, gid := strconv.Itoa(int(st.Uid)), strconv.Itoa(int(st.Gid))
	if !l.has('n') {
		if u, err := user.LookupId(uid); err == nil {
			uid = u.Username
		}
		if g, err := user.LookupGroupId(gid); err == nil {
			gid = g.Name
		}
	}
	return fmt.Sprintf("%d\t%s\t%s", st.Nlink, uid, gid)
}

func (l *lister) size(n int64) string {
	if !l.has('h') || n < 1024 {
		return strconv.FormatInt(n, 10)
	}
	value, unit := float64(n), 0
	for value >= 1024 && unit < 5 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f%c", value, "BKMGTP"[unit])
}

// modeText is a mode as ls shows it, drwxr-xr-x.
func modeText(mode fs.FileMode) string {
	kind := byte('-')
	for bit, letter := range map[fs.FileMode]byte{fs.ModeDir: 'd', fs.ModeSymlink: 'l', fs.ModeNamedPipe: 'p', fs.ModeSocket: 's', fs.ModeDevice: 'b'} {
		if mode&bit != 0 {
			kind = letter
		}
	}
	if mode&fs.ModeCharDevice != 0 {
		kind = 'c'
	}
	text := []byte(string(kind) + mode.Perm().String()[1:])
	for _, s := range []struct {
		bit  fs.FileMode
		at   int
		both byte
	}{{fs.ModeSetuid, 3, 's'}, {fs.ModeSetgid, 6, 's'}, {fs.ModeSticky, 9, 't'}} {
		if mode&s.bit == 0 {
			continue
		}
		if text[s.at] == '-' {
			s.both -= 'a' - 'A'
		}
		text[s.at] = s.both
	}
	return string(text)
}
