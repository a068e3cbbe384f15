package doctor

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cupola/runtime/pattern"
)

// Owner is a daemon's names for the resources that it creates on the machine.
type Owner struct {
	DataDir    string
	Table      string // of nftables
	Cgroup     string // below the root of every hierarchy
	LinkPrefix string
	Subnet     netip.Prefix
}

// Leak is a resource that a stopped daemon left behind.
type Leak struct {
	Kind string `json:"kind"` // mount, loop device, cgroup, process, link, address, nftables table, nftables rule, directory
	Name string `json:"name"`
	Fix  string `json:"fix"` // the command that removes it
}

// String returns one human-readable line.
func (l Leak) String() string { return fmt.Sprintf("%s %s", l.Kind, l.Name) }

// owns reports whether the owner created the finding.
func (o Owner) owns(f finding) bool {
	switch f.Kind {
	case kindTable, kindRule:
		return f.key == o.Table
	case kindCgroup, kindProcess:
		return f.key == o.Cgroup
	case kindLink:
		return strings.HasPrefix(f.key, o.LinkPrefix) && strings.Trim(f.key[len(o.LinkPrefix):], "0123456789") == ""
	case kindAddress:
		return f.key == o.LinkPrefix || f.key == o.Subnet.Addr().Next().String() // the address was the key in older versions
	}
	return below(f.key, o.DataDir) || below(f.key, realPath(o.DataDir))
}

// The kinds of leaks.
const (
	kindTable     = "nftables table"
	kindRule      = "nftables rule"
	kindLink      = "link"
	kindAddress   = "address"
	kindCgroup    = "cgroup"
	kindProcess   = "process"
	kindMount     = "mount"
	kindLoop      = "loop device"
	kindDirectory = "directory"
	kindDaemon    = "daemon"
)

// finding is a possible leak. key identifies its owner: a name or a path. base
// is the data directory in that path, or "".
type finding struct {
	Leak
	key, base string
}

func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func realPath(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// unowned returns the findings without an owner.
func unowned(found []finding, owners []Owner) (left []finding) {
	for _, f := range found {
		if !slices.ContainsFunc(owners, func(o Owner) bool { return o.owns(f) }) {
			left = append(left, f)
		}
	}
	return left
}

// stopped merges the findings of each existing data directory whose daemon has
// stopped into one leak: its containers may still run, and one command stops
// them. isData reports whether a directory is a data directory.
func stopped(found []finding, owner func(string) Owner, isData func(string) bool) []Leak {
	var leaks []Leak
	for _, f := range found {
		if f.base == "" || !isData(f.base) {
			continue
		}
		own := owner(f.base)
		if !slices.ContainsFunc(found, func(f finding) bool { return own.owns(f) && f.Kind != kindDirectory }) {
			continue // only files
		}
		leaks = append(leaks, own.leak(found))
		found = unowned(found, []Owner{own})
	}
	for _, f := range found {
		leaks = append(leaks, f.Leak)
	}
	return leaks
}

// leak describes what the owner's stopped daemon left.
func (o Owner) leak(found []finding) Leak {
	l := Leak{Kind: kindDaemon, Name: "of " + o.DataDir + " has stopped", Fix: "sudo cupola cleanup --data-dir " + quoted(o.DataDir)}
	processes, others := 0, map[string]bool{}
	for _, f := range found {
		switch {
		case !o.owns(f):
		case f.Kind == kindProcess:
			processes++
		case f.Kind == kindDirectory:
			l.Fix += " && " + f.Fix
		default:
			others[f.Kind] = true
		}
	}
	if processes > 0 {
		l.Name += fmt.Sprintf(", and %s", counted(processes, "process of its apps still runs", "processes of its apps still run"))
	} else if len(others) > 0 {
		l.Name += ", and left: " + strings.Join(slices.Sorted(maps.Keys(others)), ", ")
	}
	return l
}

// mountShapes match mount points in a data directory. The first group is the
// directory.
var mountShapes = []struct {
	kinds []string // of file system; none is any
	at    func() *regexp.Regexp
}{
	{[]string{"nsfs"}, pattern.Lazy(`^(.+?)(?:/netns)?/ns/[0-9]+$`)},
	{[]string{"overlay"}, pattern.Lazy(`^(.+?)(?:/rootfs)?/run/[^/]+/root$`)},
	{[]string{"ext4"}, pattern.Lazy(`^(.+?)(?:/rootfs)?/(?:run/[^/]+|templates/\.probe-[^/]+)/disk$`)},
	{[]string{"sysfs", "tmpfs", "overlay"}, pattern.Lazy(`^(.+)/containers/(?:sys|dev|helper)$`)},
	{[]string{"ext4"}, pattern.Lazy(`^(.+)/volumes/` + volumeName + `/disk$`)},
	{nil, pattern.Lazy(`^(.+)/volumes/\.shown/[^/]+/[0-9]+$`)},
	{[]string{"tmpfs"}, pattern.Lazy(`^(.+)/memory/` + container + `$`)},
	{nil, pattern.Lazy(`^(.*/[^/]*cupola[^/]*)/(?:rootfs/run|memory)$`)},
}

// A volume is named for its service instance, or for a disk of BOSH and its
// instance. Other programs have directories "volumes", too.
const (
	guid       = `[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`
	container  = `[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-(?:[0-9a-f]{4}|[0-9a-f]{12})` // of an instance, or of a task
	volumeName = `(?:bosh-[a-z]+-)?` + guid
)

// imageShape is the file behind a loop device.
var imageShape = pattern.Lazy(`^(.+?)(?:(?:/rootfs)?/(?:run/[^/]+|templates/\.probe-[^/]+)|/volumes/` + volumeName + `)/disk\.img$`)

// parseMounts returns cupola's mounts in a mountinfo, the latest first: the
// order in which they can be unmounted.
func parseMounts(mountinfo string) (found []finding) {
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(line, " - ")
		at, kind := strings.Fields(left), strings.Fields(right)
		if !ok || len(at) < 5 || len(kind) < 1 {
			continue
		}
		point := unescape(at[4])
		name := strings.TrimSuffix(point, "//deleted")
		for _, s := range mountShapes {
			at := s.at().FindStringSubmatch(name)
			if at == nil || len(s.kinds) > 0 && !slices.Contains(s.kinds, kind[0]) {
				continue
			}
			found = append(found, finding{Leak{kindMount, point, "sudo umount -l " + quoted(point)}, name, at[1]})
			break
		}
	}
	slices.Reverse(found)
	return found
}

// unescape decodes a path of mountinfo, in which blanks are octal escapes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			var n byte
			if _, err := fmt.Sscanf(s[i+1:i+4], "%03o", &n); err == nil {
				b.WriteByte(n)
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func quoted(s string) string {
	if !strings.ContainsAny(s, " '\"\\$`*?()[]<>|&;!#~\t\n") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
