package kube

import (
	"cmp"
	"fmt"

	"cupola/server/bosh"
	"cupola/server/bosh/manifest"
)

// Phase says how far an update goes.
type Phase string

// The phases.
const (
	Full   Phase = "full"   // all instances; the zero value is this
	Canary Phase = "canary" // only the update's canaries
)

// Options say how a deployment is written.
type Options struct {
	Namespace   string            `json:"namespace"` // "": the applier's default
	Phase       Phase             `json:"phase"`
	WithSecrets bool              `json:"with_secrets"` // Secrets have their values
	Lenient     bool              `json:"lenient"`      // what Kubernetes cannot do is a warning
	StsVersion  int               `json:"sts_version"`  // the number in names of StatefulSets; 0 is 1
	ZoneLabel   string            `json:"zone_label"`   // of nodes; "" is DefaultZoneLabel
	Zones       map[string]string `json:"zones"`        // what the label says for an AZ, where that is not its name
	Ulimits     bool              `json:"ulimits"`      // run processes through a shell that sets their limits
	HostPaths   bool              `json:"host_paths"`   // mount unrestricted volumes outside of /var/vcap from the node
	// Known are the versions of Secrets that are there, by their names without
	// "-v<N>": what has changed gets the next version.
	Known map[string]Version `json:"known"`
}

// DefaultZoneLabel is the label by which nodes tell their zone.
const DefaultZoneLabel = "topology.kubernetes.io/zone"

// Input is a deployment, and the texts that it was made of.
type Input struct {
	*bosh.Deployment
	WithOps   []byte     // the manifest with its ops applied
	Desired   []byte     // and with all values in it
	Variables []Variable // with their values
}

// Variable is one of the deployment's.
type Variable struct {
	Name     string            `json:"name"`
	Implicit bool              `json:"implicit"` // a user's value
	Made     string            `json:"made"`     // of what it was made, variables.Value's
	Fields   map[string]string `json:"fields"`   // by the keys of its Secret
}

// Warning reports a feature of a deployment that Kubernetes lacks or
// implements differently.
type Warning struct {
	Path string `json:"path"` // like that of manifest.Finding
	What string `json:"what"`
}

// String is the warning on one line.
func (w Warning) String() string { return w.Path + ": " + w.What }

// Render renders a deployment as objects, in the order in which to apply them.
// The same input gives the same objects.
func Render(in Input, o Options) ([]Object, []Warning, error) {
	o.StsVersion, o.ZoneLabel, o.Phase = max(o.StsVersion, 1), cmp.Or(o.ZoneLabel, DefaultZoneLabel), cmp.Or(o.Phase, Full)
	r := &rendering{Input: in, Options: o, names: manifest.Names{Deployment: in.Name}}
	if err := r.secrets(); err != nil {
		return nil, nil, err
	}
	for _, a := range in.Aliases {
		r.warn("/addons", "the name %s is not written: a cluster's DNS has those of Services alone", a.Domain)
	}
	for i := range in.Groups {
		if err := r.group(&in.Groups[i]); err != nil {
			return nil, nil, fmt.Errorf("instance group %q: %w", in.Groups[i].Name, err)
		}
	}
	if !o.WithSecrets {
		r.hide()
	}
	all, err := sorted(r.objects)
	return all, r.warnings, err
}

// rendering is a Render under way.
type rendering struct {
	Input
	Options
	names    manifest.Names
	objects  []Object
	warnings []Warning
	warned   map[Warning]bool
}

func (r *rendering) add(o Object) { r.objects = append(r.objects, o) }

// warn adds a warning, once per path and text.
func (r *rendering) warn(path, format string, args ...any) {
	w := Warning{path, fmt.Sprintf(format, args...)}
	if r.warned == nil {
		r.warned = map[Warning]bool{}
	}
	if !r.warned[w] {
		r.warned[w] = true
		r.warnings = append(r.warnings, w)
	}
}

// refuse is an error, or a warning for the lenient.
func (r *rendering) refuse(path, format string, args ...any) error {
	if r.Lenient {
		r.warn(path, format, args...)
		return nil
	}
	return fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
}

func (g *group) path() string { return "/instance_groups/name=" + g.Name }

func (g *group) jobPath(j *bosh.Job) string { return g.path() + "/jobs/name=" + j.Name }

// group is an instance group during rendering.
type group struct {
	*bosh.Group
	r     *rendering
	files files
	// isolated: a process has a persistent disk, so each job has a separate
	// part of the disk.
	isolated bool
}

// group adds all objects of a group.
func (r *rendering) group(of *bosh.Group) error {
	g := &group{Group: of, r: r}
	for i := range of.Jobs {
		if a := of.Jobs[i].Image.Archive; a != (manifest.Archive{}) {
			return fmt.Errorf("job %q: its release %s/%s is an archive, which no cluster can run; give the url of its release images", of.Jobs[i].Name, a.Name, a.Version)
		}
		if of.Jobs[i].Image.Local {
			return fmt.Errorf("job %q: its image is %s on this machine, which no cluster can pull; give its release a registry's url", of.Jobs[i].Name, of.Jobs[i].Image.Reference)
		}
		for _, p := range of.Jobs[i].Processes {
			if p.Monit != nil {
				return fmt.Errorf("job %q: its processes are those of its monit file, which no cluster can run; give them in quarks.bpm.processes", of.Jobs[i].Name)
			}
			g.isolated = g.isolated || p.PersistentDisk
		}
	}
	if err := g.fileSecrets(); err != nil {
		return err
	}
	if err := g.check(); err != nil {
		return err
	}
	switch of.Lifecycle {
	case manifest.Errand:
		return g.cronJob()
	case manifest.AutoErrand:
		return g.job()
	}
	if err := g.services(); err != nil {
		return err
	}
	if err := g.statefulSets(); err != nil {
		return err
	}
	g.disruptionBudget()
	return nil
}

// check warns of group features that Kubernetes lacks.
func (g *group) check() error {
	for _, m := range g.MigratedFrom {
		g.r.warn(g.path()+"/migrated_from", "Kubernetes renames nothing: what instance group %q has keeps its name and its volumes, which you have to move yourself", m.Name)
	}
	for i := range g.Jobs {
		j := &g.Jobs[i]
		if j.Varies {
			if err := g.r.refuse(g.jobPath(j), "bpm differs between instances; pods of a StatefulSet are all alike, they get what instance 0 has"); err != nil {
				return err
			}
		}
		if j.Scripts.PostDeploy || j.Scripts.PostStop {
			g.r.warn(g.jobPath(j), "Kubernetes has no time at which it would run bin/post-deploy or bin/post-stop")
		}
	}
	return nil
}
