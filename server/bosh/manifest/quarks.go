package manifest

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

// quarksNames are the names of the block, the later one first.
var quarksNames = []string{"quarks", "bosh_containerization"}

// Quarks is the block of a job's properties that says how its containers run:
// quarks, or bosh_containerization of old.
type Quarks struct {
	At
	Ports []Port
	Run   Run
	// Processes is bpm.processes: merged by name over the release's own. NoProcesses
	// says that the list is there and empty, so a job without bpm.yml runs none.
	Processes     []map[string]any
	NoProcesses   bool
	Envs          []map[string]any // Kubernetes' EnvVar: override those of the processes
	PreRender     PreRender
	PostStart     []string          // argv of what has to succeed before bin/post-start runs
	ActivePassive map[string]*Probe // by container: who passes is the active instance
}

// Port is one that a job listens at.
type Port struct {
	At
	Name     string // Sanitize makes the one for Kubernetes of it
	Protocol string // TCP or UDP; TCP when ""
	Internal int
}

// Run says how the containers of a job run.
type Run struct {
	Healthcheck     map[string]Healthcheck // by process
	Scaling         *Scaling
	Capabilities    []string // besides those of the processes
	MemoryMB        int      // 0: as vm_resources say
	VirtualCPUs     float64  // 0: as vm_resources say
	SecurityContext map[string]any
}

// Healthcheck is the probes of a process. Nil is none.
type Healthcheck struct {
	At
	Readiness, Liveness *Probe
}

// Scaling is how many instances a job bears; zero says nothing.
type Scaling struct {
	At
	Min, Max, HA int
}

// PreRender are scripts that patch what templates are rendered from.
type PreRender struct{ BPM, IGResolver, Jobs []string }

// quarksOf reads the block of a job's properties, or returns nil.
func quarksOf(props *object) *Quarks {
	var block *object
	for _, name := range quarksNames {
		at := tree.Get(props.node, name)
		b := props.in(name)
		switch {
		case b == nil:
		case block != nil:
			props.d.found.errorf(props.at(name, at), "quarks and bosh_containerization are two names of one block; give one of them")
		default:
			block = b
		}
	}
	if block == nil {
		return nil
	}
	block.key = props.tableKey(quarksNames[0])
	return quarks(block)
}

func quarks(o *object) *Quarks {
	defer o.done()
	q := &Quarks{At: o.At, Envs: o.maps("envs"), Run: containerRun(o.in("run")), ActivePassive: o.probes("activePassiveProbes")}
	o.each("ports", "name", func(p *object) {
		q.Ports = append(q.Ports, Port{p.At, p.text("name"), p.text("protocol"), p.number("internal")})
	})
	if bpm := o.in("bpm"); bpm != nil {
		q.Processes = bpm.maps("processes")
		n := tree.Get(bpm.node, "processes")
		q.NoProcesses = n != nil && n.Kind == yaml.SequenceNode && len(n.Content) == 0
		bpm.any("unsupported_template")
		bpm.done()
	}
	if pre := o.in("pre_render_scripts"); pre != nil {
		q.PreRender = PreRender{pre.texts("bpm"), pre.texts("ig_resolver"), pre.texts("jobs")}
		pre.done()
	}
	q.PostStart = postStart(o.in("post_start"))
	for _, internal := range []string{"debug", "consumes", "instances", "is_addon", "release"} {
		o.any(internal)
	}
	return q
}

// postStart is post_start.condition.exec.command.
func postStart(o *object) (argv []string) {
	if o == nil {
		return nil
	}
	defer o.done()
	if c := o.in("condition"); c != nil {
		if e := c.in("exec"); e != nil {
			argv = e.texts("command")
			e.done()
		}
		c.done()
	}
	return argv
}

func containerRun(o *object) (r Run) {
	if o == nil {
		return r
	}
	defer o.done()
	r = Run{Capabilities: o.texts("capabilities"), MemoryMB: o.number("memory"), VirtualCPUs: o.float("virtual-cpus"), SecurityContext: o.values("security_context")}
	if s := o.in("scaling"); s != nil {
		r.Scaling = &Scaling{s.At, s.number("min"), s.number("max"), s.number("ha")}
		s.done()
	}
	o.entries("healthcheck", func(process string, n *yaml.Node, h *object) {
		if n.Kind != yaml.MappingNode {
			h.d.found.errorf(h.At, "expected a map, got %s", tree.Kind(n))
			return
		}
		if r.Healthcheck == nil {
			r.Healthcheck = map[string]Healthcheck{}
		}
		r.Healthcheck[process] = Healthcheck{h.At, h.probe("readiness"), h.probe("liveness")}
		h.done()
	})
	return r
}

// maps is a list of maps of whatever they hold.
func (o *object) maps(key string) (all []map[string]any) {
	for i, n := range o.list(key) {
		m, ok := tree.Value(n).(map[string]any)
		if !ok {
			o.d.found.errorf(At{o.at(key, nil).Path + "/" + tree.Segment(n, "name", i), n.Line}, "expected a map, got %s", tree.Kind(n))
			continue
		}
		all = append(all, m)
	}
	return slices.Clip(all)
}
