package manifest

import (
	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// Probe is a Kubernetes probe. One of Exec, HTTPGet, TCPPort and GRPCPort is
// given. Zero seconds and thresholds are Kubernetes' defaults.
type Probe struct {
	At
	Exec     []string
	HTTPGet  *HTTPGet
	TCPPort  string // a number, or the name of a port
	TCPHost  string
	GRPCPort int
	GRPCName string // the service asked for

	InitialDelaySeconds  int
	TimeoutSeconds       int
	PeriodSeconds        int
	SuccessThreshold     int
	FailureThreshold     int
	TerminationGraceSecs *int // terminationGracePeriodSeconds

	kinds           int // how many of the four were given
	exec, tcp, grpc bool
}

// HTTPGet is a request that has to be answered with 200 to 399.
type HTTPGet struct {
	Path, Port, Host, Scheme string // Port is a number, or the name of a port
	Headers                  []map[string]any
}

func (o *object) probe(key string) *Probe {
	p := o.in(key)
	if p == nil {
		return nil
	}
	return readProbe(p)
}

// probes are probes by names that users choose.
func (o *object) probes(key string) map[string]*Probe {
	var all map[string]*Probe
	o.entries(key, func(name string, n *yaml.Node, p *object) {
		if n.Kind != yaml.MappingNode {
			p.d.found.errorf(p.At, "expected a map, got %s", tree.Kind(n))
			return
		}
		if all == nil {
			all = map[string]*Probe{}
		}
		all[name] = readProbe(p)
	})
	return all
}

// readProbe reads a probe; what it does stands in it, or in the handler of old.
func readProbe(o *object) *Probe {
	defer o.done()
	p := &Probe{At: o.At, InitialDelaySeconds: o.number("initialDelaySeconds"), TimeoutSeconds: o.number("timeoutSeconds"), PeriodSeconds: o.number("periodSeconds"),
		SuccessThreshold: o.number("successThreshold"), FailureThreshold: o.number("failureThreshold"), TerminationGraceSecs: o.maybe("terminationGracePeriodSeconds")}
	p.handler(o)
	if h := o.in("handler"); h != nil {
		p.handler(h)
		h.done()
	}
	return p
}

func (p *Probe) handler(o *object) {
	if e := o.in("exec"); e != nil {
		p.Exec, p.exec = e.texts("command"), true
		p.kinds++
		e.done()
	}
	if h := o.in("httpGet"); h != nil {
		p.HTTPGet = &HTTPGet{h.text("path"), h.text("port"), h.text("host"), h.text("scheme"), h.maps("httpHeaders")}
		p.kinds++
		h.done()
	}
	if t := o.in("tcpSocket"); t != nil {
		p.TCPPort, p.TCPHost, p.tcp = t.text("port"), t.text("host"), true
		p.kinds++
		t.done()
	}
	if g := o.in("grpc"); g != nil {
		p.GRPCPort, p.GRPCName, p.grpc = g.number("port"), g.text("service"), true
		p.kinds++
		g.done()
	}
}
