package agent

import (
	"maps"
	"path"
	"slices"
	"strings"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/bosh/bpm"
)

// Where the disks of an instance are seen.
const (
	dataDir  = "/var/vcap/data"
	storeDir = "/var/vcap/store"
	sysDir   = "/var/vcap/sys"
)

// sysMB is the size of the disk for logs and what belongs to running processes.
const sysMB = 1024

// Disks are the disks that an instance needs, by the name of their volume, with
// their sizes in MB.
func (i Instance) Disks() map[string]int {
	all := map[string]int{i.data(): i.dataMB(), i.sys(): sysMB}
	if i.Store != "" {
		all[i.Store] = i.StoreMB
	}
	return all
}

// Ephemeral are the volumes of Disks that go with the instance.
func (i Instance) Ephemeral() []string { return []string{i.data(), i.sys()} }

func (i Instance) data() string { return "bosh-data-" + i.GUID }
func (i Instance) sys() string  { return "bosh-sys-" + i.GUID }

// disks are the volumes of the instance, by where they are seen.
func (i Instance) disks() map[string]string {
	all := map[string]string{dataDir: i.data(), sysDir: i.sys()}
	if i.Store != "" {
		all[storeDir] = i.Store
	}
	return all
}

// showWhole shows what a machine of BOSH's has: the disks whole, and the directories of all jobs of the instance. That of a job with
// a monit file is on the ephemeral disk; it is written by the job's own containers.
func (i Instance) showWhole(run *lrp.RunInfo, j *Job) {
	disks := i.disks()
	for _, at := range slices.Sorted(maps.Keys(disks)) {
		run.Volumes = append(run.Volumes, lrp.Volume{Name: disks[at], Path: at})
	}
	for n := range i.Jobs {
		switch other := &i.Jobs[n]; {
		case other.monitored():
			run.Volumes = append(run.Volumes, lrp.Volume{Name: i.data(), Path: bpm.JobDir(other.Name), Dir: "jobs/" + other.Name, Owner: "root"})
		case other.Name != j.Name:
			run.Trees = append(run.Trees, lrp.Tree{Path: other.treeDir(), Files: other.tree()})
		}
	}
	if j.hasPidfiles() {
		run.Volumes = append(run.Volumes, i.pidfiles(j))
	}
	run.Setup = j.prepared()
}

// mounts returns the parts of the disks that a process sees: bpm's directories
// and the volumes in its config. By bpm's rules it sees nothing else, except
// for a persistent disk of which no process of the instance requests a part:
// that is mounted whole.
func (i Instance) mounts(j *Job, p *Process) (all []lrp.Volume) {
	at := map[string]lrp.Volume{}
	add := func(v bpm.Volume, made, unrestricted bool) {
		if _, taken := at[v.Path]; !taken { // of two the first counts, as in bpm
			m, ok := i.mount(v, made)
			m.Optional, m.Pattern = unrestricted, isPattern(v.Path)
			if ok && (unrestricted || !m.Pattern) {
				at[v.Path] = m
			}
		}
	}
	standard := standardVolumes(j, p)
	for _, v := range standard {
		add(v, true, false)
	}
	if !i.divided() && i.Store != "" {
		at[storeDir] = lrp.Volume{Name: i.Store, Path: storeDir}
	}
	for _, v := range p.AdditionalVolumes {
		add(v, !v.MountOnly, false)
	}
	for _, v := range p.Unsafe.UnrestrictedVolumes {
		if !slices.ContainsFunc(standard, func(s bpm.Volume) bool { return within(v.Path, s.Path) }) {
			add(v, false, true) // as a pattern, it may match nothing
		}
	}
	for _, path := range slices.Sorted(maps.Keys(at)) { // those above first
		all = append(all, at[path])
	}
	return all
}

// standardVolumes are the directories that bpm shows a process in any case.
func standardVolumes(j *Job, p *Process) []bpm.Volume {
	paths := []string{bpm.DataDir(j.Name) + "/tmp", path.Join(sysDir, "log", j.Name)}
	if p.EphemeralDisk {
		paths = append(paths, bpm.DataDir(j.Name))
	}
	if p.PersistentDisk {
		paths = append(paths, bpm.StoreDir(j.Name))
	}
	all := make([]bpm.Volume, len(paths))
	for n, at := range paths {
		all[n] = bpm.Volume{Path: at, Writable: true}
	}
	return all
}

func isPattern(at string) bool { return strings.ContainsAny(at, "*?[\\") }

// mount is how a container sees a directory of a disk, which is made where it is
// missing; false for what lies on no disk or is not a valid pattern.
func (i Instance) mount(v bpm.Volume, made bool) (lrp.Volume, bool) {
	if _, err := path.Match(v.Path, ""); err != nil || path.Clean(v.Path) != v.Path {
		return lrp.Volume{}, false
	}
	for at, name := range i.disks() {
		if !within(v.Path, at) {
			continue
		}
		m := lrp.Volume{Name: name, Path: v.Path, ReadOnly: !v.Writable, NoExec: !v.AllowExecutions, Dir: strings.TrimPrefix(v.Path[len(at):], "/")}
		if made && m.Dir != "" {
			m.Owner = user
		}
		return m, true
	}
	return lrp.Volume{}, false
}

// divided reports whether a process of the instance asks for a part of the
// persistent disk.
func (i Instance) divided() bool {
	for _, j := range i.Jobs {
		for _, p := range j.Processes {
			if p.PersistentDisk || slices.ContainsFunc(p.AdditionalVolumes, func(v bpm.Volume) bool { return within(v.Path, storeDir) }) {
				return true
			}
		}
	}
	return false
}

// within reports whether a path is a directory, or lies in it.
func within(at, dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }

// directories are what the scripts of a job find on the disks: what bpm makes for
// it.
func (j *Job) directories() []string {
	return []string{bpm.DataDir(j.Name), bpm.DataDir(j.Name) + "/tmp", path.Join(sysDir, "log", j.Name), path.Join(sysDir, "run", j.Name)}
}

// makeDirectories makes directories for the processes' user, where they are not
// there yet.
func makeDirectories(dirs []string) lrp.Action {
	return lrp.Run{Path: contract.Helper, Args: append([]string{contract.CommandDirectories, user}, dirs...), Dir: "/", User: "root", Quiet: true}.Action()
}

// LogVolume returns the volume with an instance's files in /var/vcap/sys/log, and their
// directory in it.
func LogVolume(instanceGUID string) (volume, dir string) {
	return Instance{GUID: instanceGUID}.sys(), "log"
}
