package bosh

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cupola/server/bosh/bpm"
	"cupola/server/bosh/manifest"
)

const bpmFile = "config/bpm.yml"

// readProcesses reads what bpm.yml says for each instance, and lays over it what
// the manifest says.
func (g *group) readProcesses(j *job) error {
	over, err := bpm.FromValue(map[string]any{"processes": inline(j.Job)})
	if err != nil {
		return fmt.Errorf("quarks.bpm: %w", err)
	}
	var last error
	for i := range j.rendered {
		r := &j.rendered[i]
		if j.monit {
			if r.Processes, err = g.monitored(j, r.Files); err != nil {
				return err
			}
			continue
		}
		config, err := j.config(g, r.Files)
		if err == nil {
			config = config.Merge(over)
			err = config.Check(j.Name)
		}
		if err == nil {
			r.Processes, err = g.contain(j, config)
		}
		if err == nil && j.conditions {
			j.addConditions(r)
		}
		if err != nil && (last == nil || err.Error() != last.Error()) {
			last = errors.Join(last, err) // what is wrong with one is mostly so with all
		}
	}
	return last
}

// inline are the processes in the manifest.
func inline(j *manifest.Job) (all []any) {
	if j.Quarks != nil {
		for _, p := range j.Quarks.Processes {
			all = append(all, p)
		}
	}
	return all
}

// config is what the release says of the job's processes. An errand may have
// BOSH's bin/run alone.
func (j *job) config(g *group, files []JobFile) (bpm.Config, error) {
	has := func(path string) int { return slices.IndexFunc(files, func(f JobFile) bool { return f.Path == path }) }
	if at := has(bpmFile); at >= 0 {
		return bpm.Parse(files[at].Content)
	}
	switch {
	case j.Quarks != nil && j.Quarks.NoProcesses:
		return bpm.Config{}, nil
	case g.Lifecycle != manifest.Service && has("bin/run") >= 0 && len(inline(j.Job)) == 0:
		return bpm.Config{Processes: []bpm.Process{{Name: "run", Executable: bpm.JobDir(j.Name) + "/bin/run"}}}, nil
	case len(inline(j.Job)) == 0:
		return bpm.Config{}, fmt.Errorf("has no BPM information: its release renders no %s and has no monit file, and the manifest has no quarks.bpm.processes", bpmFile)
	}
	return bpm.Config{}, nil
}

func (g *group) contain(j *job, config bpm.Config) (all []Process, err error) {
	for _, p := range config.Processes {
		if p.PersistentDisk && g.PersistentDiskMB == 0 {
			return nil, fmt.Errorf("job '%s' wants to use persistent disk but instance group '%s' doesn't have any persistent disk declaration", j.Name, g.Name)
		}
		all = append(all, g.process(j, p))
	}
	if j.Quarks == nil {
		return all, nil
	}
	for _, name := range slices.Sorted(maps.Keys(j.Quarks.Run.Healthcheck)) {
		if !slices.ContainsFunc(all, func(p Process) bool { return p.Name == name }) {
			return nil, fmt.Errorf("the healthcheck is of process %q, which the job does not have", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.Quarks.ActivePassive)) {
		if !slices.ContainsFunc(all, func(p Process) bool { return p.Container == name || p.Name == name }) {
			return nil, fmt.Errorf("the activePassiveProbe is of container %q, which the job does not have", name)
		}
	}
	return all, nil
}

// process gives p its limits: BPM's own go before those of quarks.run, and these
// before those of vm_resources.
func (g *group) process(j *job, p bpm.Process) Process {
	var run manifest.Run
	var vm manifest.VMResources
	if j.Quarks != nil {
		run = j.Quarks.Run
		p.Env = plain(p.Env, j.Quarks.Envs)
	}
	if g.VMResources != nil {
		vm = *g.VMResources
	}
	p.Limits.Memory = cmp.Or(p.Limits.Memory, bpm.Bytes(run.MemoryMB)<<20, bpm.Bytes(vm.RAMMB)<<20)
	p.Capabilities = union(p.Capabilities, run.Capabilities)
	check := run.Healthcheck[p.Name]
	return Process{
		Process: p.WithDefaults(j.Name), Container: manifest.Container(j.Name, p.Name), CPUs: cmp.Or(run.VirtualCPUs, vm.CPU),
		Readiness: placeless(check.Readiness), Liveness: placeless(check.Liveness),
	}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// plain lays the EnvVars that have a value over env.
func plain(env map[string]string, over []map[string]any) map[string]string {
	all := maps.Clone(env)
	for _, v := range over {
		name, _ := v["name"].(string)
		if from := v["valueFrom"]; name == "" || from != nil {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = ""
		if v["value"] != nil {
			all[name] = fmt.Sprint(v["value"])
		}
	}
	return all
}

// special are the EnvVars that only Kubernetes can tell the value of.
func special(all []map[string]any) (some []map[string]any) {
	for _, v := range all {
		if v["valueFrom"] != nil {
			some = append(some, v)
		}
	}
	return some
}

// checkContainers finds processes that would be one container.
func (g *group) checkContainers() error {
	of := map[string]string{}
	var faults []error
	for _, j := range g.jobs {
		if len(j.rendered) == 0 {
			continue
		}
		for _, p := range j.rendered[0].Processes {
			who := fmt.Sprintf("process %q of job %q", p.Name, j.Name)
			if other, taken := of[p.Container]; taken {
				faults = append(faults, fmt.Errorf("instance group %q: %s and %s would both be the container %s", g.Name, other, who, p.Container))
			}
			of[p.Container] = who
		}
	}
	return errors.Join(faults...)
}

func (j *job) scripts() (s Scripts) {
	for name, has := range map[string]*bool{
		"pre-start": &s.PreStart, "post-start": &s.PostStart, "post-deploy": &s.PostDeploy, "pre-stop": &s.PreStop, "drain": &s.Drain, "post-stop": &s.PostStop,
	} {
		for _, t := range j.release.Templates {
			*has = *has || t.Destination == "bin/"+name
		}
	}
	return s
}
