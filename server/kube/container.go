package kube

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"cupola/server/bosh"
	"cupola/server/bosh/bpm"
	"cupola/server/bosh/manifest"
)

// vcap is the user of release images, and their group.
const vcap = 1000

// escaped keeps text from being expanded: Kubernetes replaces $(NAME) in
// arguments and in values of variables.
func escaped(s string) string { return strings.ReplaceAll(s, "$(", "$$(") }

func escapedAll(all []string) []any {
	out := make([]any, len(all))
	for i, s := range all {
		out[i] = escaped(s)
	}
	return out
}

// containers are those of a pod: one for each process.
func (g *group) containers(at place) (all []any) {
	for i := range g.Jobs {
		j := &g.Jobs[i]
		for n := range j.Processes {
			c := g.container(j, &j.Processes[n], at)
			if n == 0 {
				c["ports"] = containerPorts(j)
			}
			if hooks := g.lifecycle(j, n); len(hooks) > 0 && at.service {
				c["lifecycle"] = hooks
			}
			all = append(all, without(c))
		}
	}
	return all
}

func (g *group) container(j *bosh.Job, p *bosh.Process, at place) doc {
	c := g.process(j, p, at)
	c["name"] = p.Container
	c["resources"] = g.resources(p)
	if at.service {
		c["readinessProbe"], c["livenessProbe"] = g.probe(j, g.readiness(j, p)), g.probe(j, p.Liveness)
	}
	g.warnOf(j, p)
	return c
}

// process is what a process and its hook have in common.
func (g *group) process(j *bosh.Job, p *bosh.Process, at place) doc {
	command := []string{p.Executable}
	if limits := ulimits(p); limits != "" && g.r.Ulimits {
		command = []string{"/bin/sh", "-c", limits + `exec "$0" "$@"`, p.Executable}
	}
	return doc{
		"image": j.Image.Reference, "command": escapedAll(command), "args": escapedAll(p.Args), "env": g.env(j, p.Env, at),
		"workingDir": p.Workdir, "volumeMounts": g.mountsOf(j, p), "securityContext": security(j, p),
	}
}

func ulimits(p *bosh.Process) (s string) {
	if p.Limits.OpenFiles > 0 {
		s = fmt.Sprintf("ulimit -n %d; ", p.Limits.OpenFiles)
	}
	if p.Limits.CoreFileSize != nil {
		s += fmt.Sprintf("ulimit -c %d; ", *p.Limits.CoreFileSize/512) // in blocks, as a POSIX shell has it
	}
	return s
}

// env are the variables of a container, and those that tell it which instance
// it is.
func (g *group) env(j *bosh.Job, vars map[string]string, at place) []any {
	all := []any{}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		all = append(all, doc{"name": name, "value": escaped(vars[name])})
	}
	all = append(all, list(j.Envs)...)
	return append(all, g.placeEnv(at)...)
}

// limits of resources.

func (g *group) resources(p *bosh.Process) doc {
	limits, requests := doc{}, doc{}
	if p.Limits.Memory > 0 {
		limits["memory"] = memory(p.Limits.Memory)
	}
	if p.CPUs > 0 {
		limits["cpu"] = cpus(p.CPUs)
	}
	for name, amount := range p.Requests {
		requests[name] = amount
	}
	return without(doc{"limits": limits, "requests": requests})
}

func memory(b bpm.Bytes) string {
	if b%(1<<20) == 0 {
		return fmt.Sprintf("%dMi", b>>20)
	}
	return fmt.Sprint(int64(b))
}

func cpus(n float64) string {
	if n == math.Trunc(n) {
		return fmt.Sprint(int64(n))
	}
	return fmt.Sprintf("%dm", int64(math.Ceil(n*1000)))
}

// security is what bpm grants a process.
func security(j *bosh.Job, p *bosh.Process) doc {
	s := doc{"runAsUser": vcap, "runAsGroup": vcap, "allowPrivilegeEscalation": false, "capabilities": without(doc{"drop": []any{"ALL"}, "add": list(p.Capabilities)})}
	if p.Unsafe.Privileged {
		s = doc{"runAsUser": 0, "runAsGroup": 0, "privileged": true}
	}
	maps.Copy(s, j.Security)
	return s
}

func containerPorts(j *bosh.Job) []any {
	all := []any{}
	for _, p := range j.Ports {
		all = append(all, without(doc{"name": portName(p), "containerPort": p.Internal, "protocol": protocol(p)}))
	}
	return all
}

// warnOf warns of bpm features that Kubernetes lacks.
func (g *group) warnOf(j *bosh.Job, p *bosh.Process) {
	warn := func(format string, args ...any) {
		g.r.warn(g.jobPath(j), "process %q: %s", p.Name, fmt.Sprintf(format, args...))
	}
	if ulimits(p) != "" && !g.r.Ulimits {
		warn("limits.open_files and core_file_size are the node's; --ulimit-wrapper sets them by a shell")
	}
	if p.Limits.Processes > 0 {
		warn("limits.processes is the kubelet's podPidsLimit")
	}
	if p.Unsafe.Privileged {
		warn("unsafe.privileged makes the container root's and privileged: the cluster's policy must allow that")
	}
	if p.Unsafe.HostPIDNamespace {
		warn("unsafe.host_pid_namespace holds for all containers of the pod: the cluster's policy must allow that")
	}
	for _, c := range p.Capabilities {
		if c != "NET_BIND_SERVICE" && !p.Unsafe.Privileged {
			warn("capability %s reaches only programs whose files have it: Kubernetes gives users other than root none", c)
		}
	}
}

// unprivilegedPorts lets everybody listen at ports below 1024: capabilities do
// not reach processes that are not root's.
func (g *group) unprivilegedPorts() bool {
	return g.any(func(p *bosh.Process) bool { return slices.Contains(p.Capabilities, "NET_BIND_SERVICE") })
}

func (g *group) any(f func(*bosh.Process) bool) bool {
	for i := range g.Jobs {
		for n := range g.Jobs[i].Processes {
			if f(&g.Jobs[i].Processes[n]) {
				return true
			}
		}
	}
	return false
}

// readiness is what reports whether a container is ready. Of the instances of a
// job that has an active one, only that is.
func (g *group) readiness(j *bosh.Job, p *bosh.Process) *manifest.Probe {
	if probe := j.Active(p); probe != nil {
		return probe
	}
	return p.Readiness
}

// activePassive reports whether only one instance is ready at a time.
func (g *group) activePassive() bool {
	return slices.ContainsFunc(g.Jobs, func(j bosh.Job) bool { return len(j.ActivePassive) > 0 })
}
