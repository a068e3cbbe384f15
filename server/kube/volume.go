package kube

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"cupola/server/bosh"
	"cupola/server/bosh/bpm"
	"cupola/server/bosh/manifest"
)

// Volumes of a pod, and where they are mounted.
const (
	renderedVolume = "rendered" // files as Secrets have them
	jobsVolume     = "jobs"     // files as this instance has them
	dataVolume     = "data"
	sysVolume      = "sys"
	tmpVolume      = "tmp"

	renderedDir = "/var/vcap/rendered"
	jobsDir     = "/var/vcap/jobs"
	dataDir     = "/var/vcap/data"
	sysDir      = "/var/vcap/sys"
	storeDir    = "/var/vcap/store"
)

// claim is the name of the group's persistent volume.
func (g *group) claim() string { return g.r.names.Claim(g.Name) }

// volumes are those of a pod, but for the persistent one.
func (g *group) volumes(instances []bosh.Instance) []any {
	all := []any{}
	if len(g.files.secrets) > 0 {
		all = append(all, g.projected(instances))
	}
	if g.files.differ {
		jobs := doc{}
		if g.Tmpfs {
			jobs["medium"] = "Memory"
		}
		all = append(all, doc{"name": jobsVolume, "emptyDir": jobs})
	}
	all = append(all, g.dataVolume(), doc{"name": sysVolume, "emptyDir": doc{}}, doc{"name": tmpVolume, "emptyDir": doc{}})
	all = append(all, g.extraVolumes()...)
	for _, d := range g.Settings.Disks {
		if len(d.Volume) > 0 {
			all = append(all, d.Volume)
		}
	}
	return all
}

// dataVolume is the ephemeral disk.
func (g *group) dataVolume() doc {
	switch {
	case g.EphemeralDiskMB == 0:
		return doc{"name": dataVolume, "emptyDir": doc{}}
	case g.Settings.EphemeralAsPVC:
		return doc{"name": dataVolume, "ephemeral": doc{"volumeClaimTemplate": doc{"spec": claimSpec(g.EphemeralDiskMB, g.PersistentDiskType)}}}
	}
	return doc{"name": dataVolume, "emptyDir": doc{"sizeLimit": fmt.Sprintf("%dMi", g.EphemeralDiskMB)}}
}

func claimSpec(sizeMB int, class string) doc {
	return without(doc{
		"accessModes": []any{"ReadWriteOnce"}, "storageClassName": class,
		"resources": doc{"requests": doc{"storage": fmt.Sprintf("%dMi", sizeMB)}},
	})
}

// claims are the templates of what each instance keeps.
func (g *group) claims() []any {
	all := []any{}
	if g.PersistentDiskMB > 0 {
		all = append(all, doc{"metadata": doc{"name": g.claim()}, "spec": claimSpec(g.PersistentDiskMB, g.PersistentDiskType)})
	}
	for _, d := range g.Settings.Disks {
		if len(d.PVC) > 0 {
			all = append(all, d.PVC)
		}
	}
	return all
}

// mounts are those of one container: no path is mounted twice.
type mounts struct {
	all  []any
	seen map[string]bool
}

func (m *mounts) add(volume, at, sub string, readOnly bool) {
	if m.seen[at] {
		return
	}
	if m.seen == nil {
		m.seen = map[string]bool{}
	}
	m.seen[at] = true
	mount := doc{"name": volume, "mountPath": at}
	if sub != "" {
		mount["subPath"] = sub
	}
	if readOnly {
		mount["readOnly"] = true
	}
	m.all = append(m.all, mount)
}

// mountsOf are those of a job's containers; p is nil for its scripts.
func (g *group) mountsOf(j *bosh.Job, p *bosh.Process) []any {
	m := &mounts{}
	switch {
	case g.files.differ:
		m.add(jobsVolume, bpm.JobDir(j.Name), j.Name, true)
	case g.hasFiles(j):
		m.add(renderedVolume, bpm.JobDir(j.Name), j.Name, true)
	}
	m.add(dataVolume, dataDir, "", false)
	m.add(sysVolume, sysDir, "", false)
	m.add(tmpVolume, "/tmp", "", false)
	g.mountStore(m, j, p)
	if p == nil {
		return m.all
	}
	for _, v := range slices.Concat(p.AdditionalVolumes, p.Unsafe.UnrestrictedVolumes) {
		g.mountVolume(m, v)
	}
	for _, d := range g.Settings.Disks {
		if len(d.VolumeMount) > 0 && (d.JobName == "" || d.JobName == j.Name) && (d.ProcessName == "" || d.ProcessName == p.Name) {
			m.all = append(m.all, d.VolumeMount)
		}
	}
	return m.all
}

func (g *group) hasFiles(j *bosh.Job) bool {
	return slices.ContainsFunc(g.files.secrets, func(s fileSecret) bool {
		return slices.ContainsFunc(s.files, func(f file) bool { return f.job == j.Name })
	})
}

// mountStore mounts the persistent disk: all of it everywhere, unless a process
// asks for its job's part.
func (g *group) mountStore(m *mounts, j *bosh.Job, p *bosh.Process) {
	switch {
	case g.PersistentDiskMB == 0:
	case !g.isolated || p == nil:
		m.add(g.claim(), storeDir, "", false)
	case p.PersistentDisk:
		m.add(g.claim(), bpm.StoreDir(j.Name), j.Name, false)
	}
}

// mountVolume mounts a directory of a process's own choice.
func (g *group) mountVolume(m *mounts, v bpm.Volume) {
	volume, sub, ok := g.within(v.Path)
	switch {
	case usable(v.Path) != nil, sub == "" && ok:
		return // it was reported, or it is the volume itself
	case !ok:
		volume = extraVolume(v.Path)
	case volume != g.claim() && v.Writable:
		return // it is in what is mounted already
	}
	m.add(volume, v.Path, sub, !v.Writable)
}

// within finds the volume that has a path, and where in it.
func (g *group) within(at string) (volume, sub string, ok bool) {
	dirs := map[string]string{dataDir: dataVolume, sysDir: sysVolume}
	if g.PersistentDiskMB > 0 {
		dirs[storeDir] = g.claim()
	}
	if g.files.differ {
		dirs[jobsDir] = jobsVolume
	} else if len(g.files.secrets) > 0 {
		dirs[jobsDir] = renderedVolume
	}
	for dir, name := range dirs {
		if rest, is := strings.CutPrefix(at+"/", dir+"/"); is {
			return name, strings.TrimSuffix(rest, "/"), true
		}
	}
	return "", "", false
}

// usable returns why a path cannot be mounted in a pod, or "".
func usable(at string) error {
	switch {
	case strings.ContainsAny(at, "*?["):
		return fmt.Errorf("%s is a pattern, which only a machine's own directories can match", at)
	case !path.IsAbs(at), path.Clean(at) != at, strings.Contains(at, ":"):
		return fmt.Errorf("%s cannot be mounted", at)
	}
	return nil
}

// extraVolumes are those of paths outside of all other volumes that processes want to see.
func (g *group) extraVolumes() (all []any) {
	at := map[string]doc{}
	for i := range g.Jobs {
		for _, p := range g.Jobs[i].Processes {
			for _, v := range p.AdditionalVolumes {
				g.extra(at, &g.Jobs[i], &p, v, false)
			}
			for _, v := range p.Unsafe.UnrestrictedVolumes {
				g.extra(at, &g.Jobs[i], &p, v, true)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(at)) {
		all = append(all, at[path])
	}
	return all
}

// extra adds the volume of v to those by their paths, unless another volume has its path.
// One of the node's replaces an empty one.
func (g *group) extra(at map[string]doc, j *bosh.Job, p *bosh.Process, v bpm.Volume, unrestricted bool) {
	where := g.jobPath(j)
	_, _, other := g.within(v.Path)
	switch err := usable(v.Path); {
	case err != nil:
		g.r.warn(where, "process %q does not get a volume: %v", p.Name, err)
	case other:
	case unrestricted && g.r.HostPaths:
		g.r.warn(where, "%s is the node's own: the cluster's policy must allow hostPath volumes", v.Path)
		at[v.Path] = doc{"name": extraVolume(v.Path), "hostPath": doc{"path": v.Path}}
	default:
		mend := ""
		if unrestricted {
			mend = "; --host-paths mounts the node's"
		}
		g.r.warn(where, "%s is a directory of the pod's own, empty at first%s", v.Path, mend)
		if at[v.Path] == nil {
			at[v.Path] = doc{"name": extraVolume(v.Path), "emptyDir": doc{}}
		}
	}
	if v.Shared {
		g.r.warn(where, "mounts inside of %s are not seen by other containers", v.Path)
	}
}

func extraVolume(at string) string {
	sum := sha256.Sum256([]byte(at))
	return "volume-" + hex.EncodeToString(sum[:4])
}

// directories are what processes find on the volumes: what bpm makes for them.
func (g *group) directories() (dirs []string) {
	for i := range g.Jobs {
		j := &g.Jobs[i]
		dirs = append(dirs, bpm.DataDir(j.Name)+"/tmp", sysDir+"/log/"+j.Name, sysDir+"/run/"+j.Name)
		for _, p := range j.Processes {
			if g.PersistentDiskMB > 0 && p.PersistentDisk {
				dirs = append(dirs, bpm.StoreDir(j.Name))
			}
			for _, v := range slices.Concat(p.AdditionalVolumes, p.Unsafe.UnrestrictedVolumes) {
				volume, _, ok := g.within(v.Path)
				if ok && !v.MountOnly && usable(v.Path) == nil && volume != renderedVolume && volume != jobsVolume {
					dirs = append(dirs, v.Path)
				}
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// portName is a name that a container's port may have, or "": Kubernetes takes
// 15 characters there.
func portName(p manifest.Port) string {
	name := manifest.Sanitize(p.Name)
	if len(name) > 15 || strings.Contains(name, "--") || !strings.ContainsAny(name, "abcdefghijklmnopqrstuvwxyz") {
		return ""
	}
	return name
}

// protocol is a port's.
func protocol(p manifest.Port) string { return cmp.Or(strings.ToUpper(p.Protocol), "TCP") }
