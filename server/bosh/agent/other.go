package agent

import (
	"path"
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/bosh/bpm"
)

// otherFiles are the rendered files of other jobs of the instance that a process sees, by its volumes. Those that are unrestricted
// may be patterns, like /var/vcap/jobs/*/config/metrics.yml.
func (i Instance) otherFiles(j *Job, p *Process) (trees []lrp.Tree) {
	shown := func(at string) bool {
		for ; at != "/"; at = path.Dir(at) {
			is := func(v bpm.Volume) bool { return v.Path == at }
			matches := func(v bpm.Volume) bool {
				ok, err := path.Match(v.Path, at)
				return err == nil && ok
			}
			if slices.ContainsFunc(p.AdditionalVolumes, is) || slices.ContainsFunc(p.Unsafe.UnrestrictedVolumes, matches) {
				return true
			}
		}
		return false
	}
	for n := range i.Jobs {
		other := &i.Jobs[n]
		dir := bpm.JobDir(other.Name)
		files := slices.DeleteFunc(slices.Clone(other.Files), func(f lrp.File) bool { return !shown(dir + "/" + f.Path) })
		if other.Name != j.Name && len(files) > 0 {
			trees = append(trees, lrp.Tree{Path: dir, Files: files})
		}
	}
	return trees
}
