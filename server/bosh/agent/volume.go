package agent

import (
	"path"
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/bosh/bpm"
)

// Where the disks of an instance are seen, by all its containers.
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

func (i Instance) volumes() []lrp.Volume {
	all := []lrp.Volume{{Name: i.data(), Path: dataDir}, {Name: i.sys(), Path: sysDir}}
	if i.Store != "" {
		all = append(all, lrp.Volume{Name: i.Store, Path: storeDir})
	}
	return all
}

// directories are what a process finds on the disks: what bpm makes for its job,
// and for itself.
func (i Instance) directories(j *Job, p *Process) []string {
	dirs := []string{bpm.DataDir(j.Name), bpm.DataDir(j.Name) + "/tmp", path.Join(sysDir, "log", j.Name), path.Join(sysDir, "run", j.Name)}
	if p.PersistentDisk {
		dirs = append(dirs, bpm.StoreDir(j.Name))
	}
	for _, v := range slices.Concat(p.AdditionalVolumes, p.Unsafe.UnrestrictedVolumes) {
		if !v.MountOnly && i.onDisk(v.Path) {
			dirs = append(dirs, v.Path)
		}
	}
	return dirs
}

// onDisk tells whether a path can be made on the instance's disks.
func (i Instance) onDisk(at string) bool {
	if strings.ContainsAny(at, "*?[") || path.Clean(at) != at {
		return false
	}
	for _, dir := range []string{dataDir, sysDir} {
		if strings.HasPrefix(at, dir+"/") {
			return true
		}
	}
	return i.Store != "" && strings.HasPrefix(at, storeDir+"/")
}

// helper is the program that all containers have from us.
const helper = "/tmp/lifecycle/lifecycle"

// makeDirectories makes directories for the processes' user, where they are not
// there yet.
func makeDirectories(dirs []string) lrp.Action {
	return lrp.Run{Path: helper, Args: append([]string{"directories", user}, dirs...), Dir: "/", User: "root", Quiet: true}.Action()
}
