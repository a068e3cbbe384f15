package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cupola/rootfs/disk"
	"cupola/runtime/network"
	"cupola/runtime/pattern"
)

// kernelDelay is how long the kernel may take to remove released resources: a
// link disappears a moment after its namespace.
const kernelDelay = 300 * time.Millisecond

// Leaks lists what stopped daemons of any data directory left in the kernel or
// in the temporary directory, except for the data directories in spare. owner
// returns the names that the daemon of a data directory uses. Leaks needs root.
func Leaks(ctx context.Context, owner func(dataDir string) Owner, spare ...string) ([]Leak, error) {
	s := survey{thisMachine(Options{})}
	first, err := s.leaks(owner, spare)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	// The survey is not atomic: a leak must be found twice.
	select {
	case <-time.After(kernelDelay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	second, err := s.leaks(owner, spare)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(first, func(l Leak) bool { return !slices.Contains(second, l) }), nil
}

// survey looks at what daemons have in the kernel.
type survey struct{ *machine }

func (s survey) leaks(owner func(string) Owner, spare []string) ([]Leak, error) {
	owners := func() (all []Owner) {
		for _, d := range s.daemons() {
			all = append(all, owner(d.DataDir))
		}
		for _, dir := range spare {
			all = append(all, owner(dir))
		}
		return all
	}
	found, err := s.all(owners())
	if err != nil {
		return nil, err
	}
	isData := func(dir string) bool {
		return s.exists(filepath.Join(dir, "lock")) && s.exists(filepath.Join(dir, "db"))
	}
	// List daemons again after the survey: a new one may have created findings.
	return stopped(unowned(found, owners()), func(dir string) Owner { return owner(s.daemonPath(dir)) }, isData), nil
}

// all finds everything, in an order in which it can be removed. It does not look into the cgroups of owners that are known already.
func (s survey) all(known []Owner) (found []finding, err error) {
	seen, err := network.Look()
	if err != nil {
		return nil, err
	}
	loops, err := s.loops()
	if err != nil {
		return nil, err
	}
	found = slices.Concat(s.cgroups(known), parseMounts(s.read("proc/self/mountinfo")), loops)
	for _, name := range seen.Links {
		found = append(found, finding{Leak{kindLink, name, "sudo ip link delete " + name}, name, ""})
	}
	for _, a := range seen.Addresses {
		found = append(found, finding{Leak{kindAddress, a.String() + " on lo", fmt.Sprintf("sudo ip address delete %s/32 dev lo", a)}, cmp.Or(a.LinkPrefix, a.String()), ""})
	}
	for _, r := range seen.Rules {
		found = append(found, finding{Leak{kindRule, r.String(), "sudo nft delete rule " + r.String()}, r.Network, ""})
	}
	for _, name := range seen.Tables {
		found = append(found, finding{Leak{kindTable, name, "sudo nft delete table ip " + name}, name, ""})
	}
	return append(found, s.directories()...), nil
}

var cgroupName = pattern.Lazy(`^cupola(-[0-9a-z]+)?$`)

// cgroups finds daemons' cgroups and the processes in them: one leak for each
// cgroup, even if version 1 has it in several hierarchies. Those of owners that
// are known are left out: they may have many.
func (s survey) cgroups(known []Owner) (found []finding) {
	h := s.hierarchies()
	roots := map[string]bool{h.unified: h.unified != ""}
	for _, root := range h.v1 {
		roots[root] = true
	}
	at, pids := map[string][]string{}, map[string][]string{}
	for root := range roots {
		entries, _ := os.ReadDir(s.path(root)) // a removed directory counts as empty
		for _, e := range entries {
			if !roots[root] || !e.IsDir() || !cgroupName().MatchString(e.Name()) || slices.ContainsFunc(known, func(o Owner) bool { return o.Cgroup == e.Name() }) {
				continue
			}
			dir := filepath.Join(root, e.Name())
			at[e.Name()] = append(at[e.Name()], dir)
			pids[e.Name()] = append(pids[e.Name()], s.pids(dir)...)
		}
	}
	for name, dirs := range at {
		slices.Sort(pids[name])
		for _, pid := range slices.Compact(pids[name]) {
			text := fmt.Sprintf("%s (%s) in cgroup %s", pid, s.read("proc/"+pid+"/comm"), name)
			found = append(found, finding{Leak{kindProcess, text, "sudo kill -9 " + pid}, name, ""})
		}
		slices.Sort(dirs)
		found = append(found, finding{Leak{kindCgroup, name, "sudo find " + strings.Join(dirs, " ") + " -depth -type d -delete"}, name, ""})
	}
	slices.SortStableFunc(found, func(a, b finding) int { return strings.Compare(a.key, b.key) })
	return found
}

// pids returns the processes in a cgroup and below.
func (s survey) pids(dir string) (all []string) {
	_ = filepath.WalkDir(s.path(dir), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Name() == "cgroup.procs" {
			text, _ := os.ReadFile(path)
			all = append(all, strings.Fields(string(text))...)
		}
		return nil // ignore a cgroup that was removed meanwhile
	})
	return all
}

func (s survey) loops() (found []finding, err error) {
	all, err := disk.Loops("/")
	for _, l := range all {
		if at := imageShape().FindStringSubmatch(l.File); at != nil {
			found = append(found, finding{Leak{kindLoop, l.Device + " of " + l.File, "sudo losetup -d " + l.Device}, l.File, at[1]})
		}
	}
	return found, err
}

// DrillPrefix begins the names of the directories in which backups are tried, next to the data directory.
const DrillPrefix = ".cupola-drill-"

// directories finds directories that demos and checks left behind.
func (s survey) directories() (found []finding) {
	for _, pattern := range []string{filepath.Join(os.TempDir(), "cupola-demo-*"), "/var/lib/.cupola-doctor-*", "/var/lib/" + DrillPrefix + "*", filepath.Join(os.TempDir(), ".cupola-doctor-*")} {
		dirs, _ := filepath.Glob(s.path(pattern)) // the patterns are well-formed
		for _, dir := range dirs {
			st, err := os.Stat(dir)
			if err != nil || !st.IsDir() || Held(dir) {
				continue
			}
			found = append(found, finding{Leak{kindDirectory, dir, "sudo rm -rf --one-file-system " + quoted(dir)}, dir, dir})
		}
	}
	return found
}
