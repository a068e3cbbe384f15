package bosh

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"cupola/runtime/contract"
	"cupola/runtime/pattern"
	"cupola/server/bosh/bpm"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/monit"
	"cupola/server/bosh/release"
)

// monitFile is where BOSH has a job's monit file, among the rendered ones.
const monitFile = "monit"

// useMonit decides whether the job's processes are those of its monit file: if neither its release nor the manifest says anything
// for BPM. Then the file is rendered as the others are. In a release for BPM it only calls bpm, and is looked at for its conditions
// alone. That of an errand with bin/run is not looked at.
func (j *job) useMonit(g *manifest.InstanceGroup) {
	is := func(name string) bool {
		return slices.ContainsFunc(j.release.Templates, func(t release.Template) bool { return t.Destination == name })
	}
	j.conditions = g.Lifecycle == manifest.Service && is(bpmFile) && !is(monitFile) && ifRule().Match(j.release.Monit)
	if j.conditions {
		j.addMonit()
	}
	if j.release.Monit == nil || g.Lifecycle != manifest.Service && is("bin/run") || is(bpmFile) || is(monitFile) || len(inline(j.Job)) > 0 || j.Quarks != nil && j.Quarks.NoProcesses {
		return
	}
	j.monit = true
	j.addMonit()
}

// ifRule finds what may be a condition before the file is rendered.
var ifRule = pattern.Lazy(`(?im)^\s*if\s+\w`)

// addMonit adds the monit file to the templates.
func (j *job) addMonit() {
	j.release.Templates = append(slices.Clip(j.release.Templates), release.Template{Source: monitFile, Destination: monitFile, Content: j.release.Monit, Mode: 0o640})
}

// monitored is the container of a job with a monit file; none if the file, with those next to it that BOSH's agent reads, has no process.
func (g *group) monitored(j *job, files []JobFile) ([]Process, error) {
	var checks []contract.MonitCheck
	for _, f := range files {
		if f.Path != monitFile && (path.Ext(f.Path) != "."+monitFile || path.Dir(f.Path) != ".") {
			continue
		}
		file, err := monit.Parse(f.Content)
		if err != nil {
			return nil, fmt.Errorf("%s, %w", f.Path, err)
		}
		checks = append(checks, file.Checks...)
		j.ignore(file.Ignored...)
	}
	if len(checks) == 0 {
		return nil, nil
	}
	if g.Lifecycle != manifest.Service {
		return nil, fmt.Errorf("its monit file has processes, which errands do not run: give it a bin/run, or processes in quarks.bpm.processes")
	}
	if err := distinct(checks); err != nil {
		return nil, err
	}
	all, err := g.contain(j, bpm.Config{Processes: []bpm.Process{{Name: j.Name, Executable: contract.Helper}}})
	if err == nil {
		all[0].Monit = checks
	}
	return all, err
}

// addConditions takes the monit file of a job for BPM from its files, and the file's conditions to the processes that they are about.
func (j *job) addConditions(r *Rendered) {
	at := slices.IndexFunc(r.Files, func(f JobFile) bool { return f.Path == monitFile })
	file, err := monit.Parse(r.Files[at].Content)
	r.Files = slices.Delete(r.Files, at, at+1)
	if err != nil {
		j.ignore(err.Error())
		return
	}
	j.ignore(file.Ignored...)
	for _, c := range file.Checks {
		n := slices.IndexFunc(r.Processes, func(p Process) bool { return c.Pidfile == bpm.Pidfile(j.Name, p.Name) })
		for _, condition := range c.Conditions {
			if n < 0 || len(condition.Exec.Args) > 0 { // which would find no monit
				j.ignore(condition.Text)
				continue
			}
			r.Processes[n].Conditions = append(r.Processes[n].Conditions, condition)
		}
	}
}

// ignore notes lines of the monit file that have no effect.
func (j *job) ignore(lines ...string) {
	for _, line := range lines {
		if !slices.Contains(j.ignored, line) {
			j.ignored = append(j.ignored, line)
		}
	}
}

// distinct finds processes of several files of a job that have the same name.
func distinct(checks []contract.MonitCheck) error {
	names := slices.SortedFunc(slices.Values(checks), func(a, b contract.MonitCheck) int { return cmp.Compare(a.Name, b.Name) })
	for n := 1; n < len(names); n++ {
		if names[n].Name == names[n-1].Name {
			return fmt.Errorf("process %q is in several monit files", names[n].Name)
		}
	}
	return nil
}
