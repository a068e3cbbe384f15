package agent

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bosh/bpm"
	"cupola/server/bosh/manifest"
)

// Instance is a spec, and what the instance is known by.
type Instance struct {
	Spec
	GUID   string
	Digest string // of the spec
	Owner  string // the deployment's GUID: whom network policies and logs know
	Store  string // the volume of its persistent disk; "": it has none
	Egress []lrp.EgressRule
	// EgressGroup is the security group whose rules apply, see lrp.Reach.
	EgressGroup string
}

// user is whom the processes of BOSH run as.
const user = "vcap"

// processGUID returns the process GUID of a process' LRP. It contains the
// digest of the spec, so that old and new LRPs differ.
func (i Instance) processGUID(job, process string) string {
	return strings.Join([]string{i.Deployment, i.Group, strconv.Itoa(i.Index), job, process, i.Digest}, ".")
}

// Processes are the ProcessGUIDs of all processes.
func (i Instance) Processes() (guids []string) {
	for j := range i.Jobs {
		for p := range i.Jobs[j].Processes {
			guids = append(guids, i.processGUID(i.Jobs[j].Name, i.Jobs[j].Processes[p].Name))
		}
	}
	return guids
}

// Desired is what runs while the instance does.
func (i Instance) Desired() []lrp.Desired {
	var all []lrp.Desired
	for j := range i.Jobs {
		job := &i.Jobs[j]
		for p := range job.Processes {
			all = append(all, i.desired(job, &job.Processes[p]))
		}
	}
	return all
}

func (i Instance) desired(j *Job, p *Process) lrp.Desired {
	run := i.container(j)
	i.show(&run, j, p)
	run.Ports = p.Ports
	watch(&run, p)
	run.Log.Source = strings.Join([]string{i.Group, j.Name, p.Name}, "/")
	return lrp.Desired{ProcessGUID: i.processGUID(j.Name, p.Name), Domain: lrp.BOSHDomain(i.Deployment),
		Owner: lrp.Owner{GUID: i.GUID, Part: j.Name + "/" + p.Name}, Instances: 1, RunInfo: run}
}

// show sets what a process runs, and what it sees.
func (i Instance) show(run *lrp.RunInfo, j *Job, p *Process) {
	limit(run, p)
	if p.Monit != nil {
		i.showWhole(run, j)
		run.Action = monit(j, p).Action()
		return
	}
	run.Volumes, run.Setup, run.Action = i.mounts(j, p), i.setup(j, p), command(p).Action()
	run.Trees = append(run.Trees, i.otherFiles(j, p)...)
	if p.Hooks.PreStart != "" { // it may set capabilities of the program, as on a machine of BOSH's
		for n := range run.CachedDependencies {
			run.CachedDependencies[n].Writable = true
		}
	}
}

// limit bounds a container as its process is.
func limit(run *lrp.RunInfo, p *Process) {
	run.MemoryMB, run.CPUWeight, run.CPUs, run.MaxPids = p.MemoryMB, cpuWeight(p.CPUs), p.CPUs, int(p.Limits.Processes)
}

// clusterSuffix ends the long form of names, as on Kubernetes.
const clusterSuffix = ".default.svc.cluster.local"

// container is what all containers of a job have.
func (i Instance) container(j *Job) lrp.RunInfo {
	own := manifest.Names{Deployment: i.Deployment}.Service(i.Group, i.Index)
	return lrp.RunInfo{
		RootFS: j.Image, ImageUsername: j.ImageUsername, ImagePassword: j.ImagePassword, CachedDependencies: j.packages(),
		Trees: []lrp.Tree{{Path: j.treeDir(), Files: j.tree()}}, AddressMark: bpm.AddressMark,
		Hostnames: []string{own, own + clusterSuffix},
		Pod:       "bosh." + i.GUID,
		DiskMB:    i.dataMB(), LogRateLimitByte: -1,
		Egress: i.Egress, EgressGroup: i.EgressGroup, PolicyGroup: i.Owner,
		Constraint: lrp.Constraint{Require: i.Require},
		Log:        lrp.LogTarget{GUID: i.Owner, Instance: strconv.Itoa(i.Index), Tags: i.tags(j)},
	}
}

// packages are shown at the paths where BOSH has them.
func (j *Job) packages() (all []lrp.CachedDependency) {
	for _, p := range j.Packages {
		all = append(all, lrp.CachedDependency{Source: lrp.Blobbed(p.Digest), To: packagesDir + "/" + p.Name})
	}
	return all
}

// packagesDir holds the packages of an instance's releases.
const packagesDir = "/var/vcap/packages"

// tree returns the job's directory: its files and, as BOSH's agent makes it, packages. There, that is a directory of links to the
// packages of this job; here one link, through which the others of the instance are seen, too. It is not part of the spec, so that
// specs of earlier versions of cupola stay equal.
func (j *Job) tree() []lrp.File {
	const name = "packages"
	if slices.ContainsFunc(j.Files, func(f lrp.File) bool { return f.Path == name || strings.HasPrefix(f.Path, name+"/") }) {
		return j.Files
	}
	return append(slices.Clip(j.Files), lrp.File{Path: name, Link: packagesDir})
}

func (i Instance) tags(j *Job) map[string]string {
	return map[string]string{"deployment": i.Deployment, "job": i.Group, "index": strconv.Itoa(i.Index), "bosh_job": j.Name}
}

// command runs a process as bpm does.
func command(p *Process) lrp.Run {
	core := uint64(0)
	if p.Limits.CoreFileSize != nil {
		core = *p.Limits.CoreFileSize
	}
	return lrp.Run{
		Core: core, Path: p.Executable, Args: p.Args, Dir: p.Workdir, Env: environment(p.Env), User: user, Nofile: p.Limits.OpenFiles, Capabilities: p.Capabilities,
		Stop: []lrp.Signal{{Name: cmp.Or(p.ShutdownSignal, "TERM"), Wait: untilQuit}, {Name: "QUIT", Wait: untilKill}},
	}
}

// bpm's times of a stop: from its shutdown signal to SIGQUIT, and from that to
// SIGKILL.
const (
	untilQuit = 15 * time.Second
	untilKill = 2 * time.Second
)

func environment(vars map[string]string) (env []lrp.EnvVar) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, lrp.EnvVar{Name: name, Value: vars[name]})
	}
	return env
}

// setup is what goes before each start of a process: its hook, which bpm runs as
// root with the environment of the process, and its directory on a disk that is shown
// whole.
func (i Instance) setup(j *Job, p *Process) (a lrp.Action) {
	if p.Hooks.PreStart != "" {
		hook := lrp.Run{Path: p.Hooks.PreStart, Dir: "/", Env: environment(p.Env), User: "root"}
		a = lrp.Within(bpm.PreStartLimit, hook.Action())
	}
	if i.Store == "" || i.divided() {
		return a
	}
	dirs := makeDirectories([]string{bpm.StoreDir(j.Name)})
	if a.IsZero() {
		return dirs
	}
	return lrp.Serial(dirs, a)
}

// watch sets the container's checks from the probes.
func watch(run *lrp.RunInfo, p *Process) {
	if p.Liveness != nil {
		c := p.check(p.Liveness)
		run.Checks.Liveness = []lrp.Check{c}
		run.StartTimeout = c.InitialDelay + time.Duration(c.Failures)*c.Interval
	}
	for _, condition := range p.Conditions {
		c := conditionCheck(condition)
		run.Checks.Liveness = append(run.Checks.Liveness, c)
		run.StartTimeout = max(run.StartTimeout, monitStart+time.Duration(c.Failures)*c.Interval)
	}
	if p.Readiness != nil {
		run.Checks.Readiness = []lrp.Check{p.check(p.Readiness)}
	}
	if p.Monit != nil {
		run.Checks.Readiness = append(run.Checks.Readiness, p.summary())
	}
	if p.Active != nil {
		probe := *p.Active
		probe.PeriodSeconds, probe.Failures = cmp.Or(probe.PeriodSeconds, activePeriod), cmp.Or(probe.Failures, 1)
		run.Checks.Active = []lrp.Check{p.check(&probe)}
	}
}

// Kubernetes' defaults for probes.
const (
	probePeriod   = 10
	probeFailures = 3
)

// activePeriod is how often cf-operator asks who is active, in seconds. It takes
// each answer as it is.
const activePeriod = 30

// check is a probe as the cell does it, with Kubernetes' defaults. A program has
// the environment of the process that it looks at.
func (p *Process) check(probe *Probe) lrp.Check {
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	c := lrp.Check{
		Type: lrp.CheckPort, Port: probe.Port,
		InvocationTimeout: seconds(max(probe.TimeoutSeconds, 1)), Interval: seconds(cmp.Or(probe.PeriodSeconds, probePeriod)),
		InitialDelay: seconds(probe.InitialDelaySecs), Failures: cmp.Or(probe.Failures, probeFailures), Successes: max(probe.Successes, 1),
	}
	switch {
	case len(probe.Exec) > 0:
		run := command(p)
		run.Path, run.Args, run.Stop = probe.Exec[0], probe.Exec[1:], nil
		c.Type, c.Run = lrp.CheckExec, &run
	case probe.Path != "":
		c.Type, c.Path, c.MaxStatus = lrp.CheckHTTP, probe.Path, maxHTTPStatus
		c.TLS, c.Host, c.Headers = probe.TLS, probe.Host, probe.Headers
	case probe.GRPC:
		c.Type, c.Service = lrp.CheckGRPC, probe.Service
	}
	return c
}

// maxHTTPStatus is the last status that Kubernetes takes for a good one.
const maxHTTPStatus = 399

// cpuWeight is Diego's weight for so many CPUs.
func cpuWeight(cpus float64) int {
	if cpus == 0 {
		return 0
	}
	return min(max(int(cpus*100), 1), 100)
}
