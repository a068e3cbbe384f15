package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
	"cupola/runtime/suggest"
)

func (l *linter) jobs(g *InstanceGroup) {
	if len(g.Jobs) == 0 {
		l.found.warnf(g.At, "the group has no jobs: nothing runs")
	}
	seen := map[string]bool{}
	for _, j := range g.Jobs {
		l.job(j, seen)
		if j.Quarks != nil {
			l.quarks(j.Quarks)
			l.scaling(g, j.Quarks.Run.Scaling)
		}
	}
}

// job checks what holds for the jobs of groups and of addons alike.
func (l *linter) job(j *Job, seen map[string]bool) {
	l.name(j.At, "job", j.Name, seen)
	switch {
	case j.Release == "":
		l.found.errorf(j.At, "the job names no release")
	case l.m.Release(j.Release) == nil && !variableText().MatchString(j.Release):
		var names []string
		for _, r := range l.m.Releases {
			names = append(names, r.Name)
		}
		l.found.errorf(j.At, "release '%s' not found%s", cut(j.Release, 100), suggest.Hint(j.Release, names))
	}
	l.aliases(j)
	for _, name := range slices.Sorted(maps.Keys(j.Consumes)) {
		if c := j.Consumes[name]; c.Manual && (c.From != "" || c.Deployment != "") {
			l.found.errorf(c.At, "a link has either its own instances and address, or comes from another; not both")
		}
	}
}

func (l *linter) quarks(q *Quarks) {
	for _, c := range q.Run.Capabilities {
		if !capability().MatchString(c) {
			l.found.errorf(At{q.Path + "/run/capabilities", q.Line}, "%q is not a capability; capabilities look like NET_BIND_SERVICE, without CAP_", cut(c, 60))
		}
	}
	for _, process := range slices.Sorted(maps.Keys(q.Run.Healthcheck)) {
		h := q.Run.Healthcheck[process]
		l.probe(h.Readiness)
		l.probe(h.Liveness)
	}
	for _, container := range slices.Sorted(maps.Keys(q.ActivePassive)) {
		l.probe(q.ActivePassive[container])
	}
	seen := map[string]bool{}
	for i, p := range q.Processes {
		name, _ := p["name"].(string)
		l.name(At{fmt.Sprintf("%s/bpm/processes/%d", q.Path, i), q.Line}, "process", name, seen)
	}
}

var capability = pattern.Lazy(`^([A-BD-Z][A-Z0-9_]*|C([B-Z0-9_][A-Z0-9_]*|A[A-OQ-Z0-9_][A-Z0-9_]*)|ALL)$`)

// probe checks that a probe does exactly one thing, and can.
func (l *linter) probe(p *Probe) {
	if p == nil {
		return
	}
	switch {
	case p.kinds == 0:
		l.found.errorf(p.At, "the probe does nothing; give one of exec, httpGet, tcpSocket and grpc")
	case p.kinds > 1:
		l.found.errorf(p.At, "a probe does one thing; give one of exec, httpGet, tcpSocket and grpc")
	case p.exec && len(p.Exec) == 0:
		l.found.errorf(p.At, "exec.command is empty")
	case len(p.Exec) == 1 && strings.ContainsAny(strings.TrimSpace(p.Exec[0]), " \t\n"):
		l.found.warnf(p.At, "exec.command has one element with spaces; run through /bin/sh -c")
	case p.HTTPGet != nil:
		l.probePort(p.At, p.HTTPGet.Port)
		if s := p.HTTPGet.Scheme; s != "" && s != "HTTP" && s != "HTTPS" {
			l.found.errorf(p.At, "httpGet.scheme is HTTP or HTTPS, not %q", cut(s, 60))
		}
	case p.tcp:
		l.probePort(p.At, p.TCPPort)
	case p.grpc:
		l.probePort(p.At, strconv.Itoa(p.GRPCPort))
	}
}

func (l *linter) probePort(at At, port string) {
	n, err := strconv.Atoi(port)
	if variableText().MatchString(port) || err != nil && portName().MatchString(port) || err == nil && n > 0 && n < 1<<16 {
		return
	}
	l.found.errorf(at, "the probe's port is a number from 1 to 65535 or the name of one, not %q", cut(port, 60))
}

// givenPortName is what users may call a port: Sanitize makes a portName of it.
var givenPortName = pattern.Lazy(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$`)

// portName is what Kubernetes takes.
var portName = pattern.Lazy(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// maxPortName is how long the name of a container's port can be in Kubernetes.
const maxPortName = 15

// ports are those of one group, by number and protocol, and by name: which job
// has each.
type ports struct{ at, names map[string]string }

// allPorts checks the ports of groups, including jobs of addons; faults of an
// addon are reported once.
func (l *linter) allPorts() {
	reported := map[At]bool{}
	for _, g := range l.m.WithAddons().InstanceGroups {
		taken := ports{at: map[string]string{}, names: map[string]string{}}
		for _, j := range g.Jobs {
			if j.Quarks == nil {
				continue
			}
			for _, p := range j.Quarks.Ports {
				before := len(l.found)
				l.port(j, p, taken)
				if reported[p.At] && len(l.found) > before {
					l.found = l.found[:before]
				}
				reported[p.At] = reported[p.At] || len(l.found) > before
			}
		}
	}
}

func (l *linter) port(j *Job, p Port, taken ports) {
	protocol := p.Protocol
	if protocol == "" {
		protocol = "TCP"
	}
	key := fmt.Sprintf("%d/%s", p.Internal, protocol)
	switch {
	case protocol != "TCP" && protocol != "UDP":
		l.found.errorf(p.At, "the protocol is TCP or UDP, not %q", cut(p.Protocol, 60))
	case p.Internal < 1 || p.Internal >= 1<<16:
		l.found.errorf(p.At, "internal is a port from 1 to 65535, not %d", p.Internal)
	case !givenPortName().MatchString(p.Name):
		l.found.errorf(p.At, "%q cannot be the name of a port; it takes letters, digits, hyphens and underscores", cut(p.Name, 60))
	case taken.at[key] != "":
		l.found.errorf(p.At, "the port %s is that of the job %q of the same group already", key, taken.at[key])
	case taken.names[Sanitize(p.Name)] != "":
		l.found.errorf(p.At, "the job %q of the same group has another port of this name", taken.names[Sanitize(p.Name)])
	case len(p.Name) > maxPortName:
		l.found.warnf(p.At, "the name is longer than %d characters; in Kubernetes only the Service's port has it", maxPortName)
	}
	taken.at[key], taken.names[Sanitize(p.Name)] = j.Name, j.Name
}

func (l *linter) scaling(g *InstanceGroup, s *Scaling) {
	if s == nil || g.unsure {
		return
	}
	n := g.Instances
	switch {
	case s.Max != 0 && s.Min > s.Max:
		l.found.errorf(s.At, "min is %d and max is %d", s.Min, s.Max)
	case n < s.Min || s.Max != 0 && n > s.Max:
		l.soft(s.At, "the job bears %s instances, the group has %d", bounds(s), n)
	case n < s.HA:
		l.found.warnf(s.At, "the job is highly available from %d instances on, the group has %d", s.HA, n)
	}
}

func bounds(s *Scaling) string {
	if s.Max == 0 {
		return fmt.Sprintf("%d or more", s.Min)
	}
	return fmt.Sprintf("%d to %d", s.Min, s.Max)
}
