package kube

import (
	"strconv"
	"strings"

	"cupola/server/bosh"
	"cupola/server/bosh/manifest"
)

// probe is a probe as Kubernetes has it, or nil.
func (g *group) probe(j *bosh.Job, p *manifest.Probe) any {
	if p == nil {
		return nil
	}
	d := doc{}
	for key, n := range map[string]int{"initialDelaySeconds": p.InitialDelaySeconds, "timeoutSeconds": p.TimeoutSeconds, "periodSeconds": p.PeriodSeconds,
		"successThreshold": p.SuccessThreshold, "failureThreshold": p.FailureThreshold} {
		if n > 0 {
			d[key] = n
		}
	}
	if p.TerminationGraceSecs != nil {
		d["terminationGracePeriodSeconds"] = *p.TerminationGraceSecs
	}
	switch {
	case len(p.Exec) > 0:
		d["exec"] = doc{"command": shell(p.Exec)}
	case p.HTTPGet != nil:
		d["httpGet"] = g.httpGet(j, p.HTTPGet)
	case p.TCPPort != "":
		d["tcpSocket"] = without(doc{"port": g.port(j, p.TCPPort), "host": p.TCPHost})
	case p.GRPCPort > 0:
		d["grpc"] = without(doc{"port": p.GRPCPort, "service": p.GRPCName})
	default:
		return nil
	}
	return d
}

func (g *group) httpGet(j *bosh.Job, h *manifest.HTTPGet) doc {
	return without(doc{"path": h.Path, "port": g.port(j, h.Port), "host": h.Host, "scheme": strings.ToUpper(h.Scheme), "httpHeaders": list(h.Headers)})
}

// shell is a command; one word with spaces in it is a line for a shell.
func shell(command []string) []any {
	if len(command) == 1 && strings.ContainsAny(command[0], " \t\n") {
		command = []string{"/bin/sh", "-c", command[0]}
	}
	return list(command)
}

// port is a port by its number: names of ports may be longer in a manifest than
// Kubernetes takes them for a container's.
func (g *group) port(j *bosh.Job, name string) any {
	if n, err := strconv.Atoi(name); err == nil {
		return n
	}
	for _, p := range j.Ports {
		if p.Name == name || manifest.Sanitize(p.Name) == name {
			return p.Internal
		}
	}
	g.r.warn(g.jobPath(j), "a probe is of port %q, which the job does not have", name)
	return name
}
