package link

import (
	"slices"

	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
)

// Deployment is what Resolve looks at.
type Deployment struct {
	Name   string
	Groups []Group
	// Shared returns what another deployment lets others consume, and whether it
	// is there at all; nil: there is none.
	Shared func(deployment string) (providers []Provider, exists bool)
}

// Group is an instance group.
type Group struct {
	Name      string
	Address   string     // leads to all of its instances that are ready
	Networks  []string   // none is any
	Instances []Instance // names and IDs are given to them
	Jobs      []Job
}

// Job is a job of a group: what the manifest says of it, and its release.
type Job struct {
	*manifest.Job
	Release release.Job
}

// Provider is a job that offers a link.
type Provider struct {
	Deployment, Group, Job string
	Name                   string // that of the release
	Alias                  string // the one by which others know it
	Type                   string
	Shared                 bool
	Link                   Link
	networks               []string
}

// Consumer is a job of a group.
type Consumer struct{ Group, Job string }

// Links are those of all jobs.
type Links struct {
	Of        map[Consumer]map[string]Link // by the name in the release; an optional one may be missing
	Providers []Provider                   // of this deployment
	Foreign   []Foreign                    // of other deployments
}

// Foreign is a link of another deployment that a job consumes.
type Foreign struct{ Deployment, Name, Type string }

// In reports whether providers share the link.
func (f Foreign) In(providers []Provider) bool {
	return slices.ContainsFunc(providers, func(p Provider) bool {
		return p.Shared && p.Type == f.Type && (f.Name == p.Alias || f.Name == p.Name)
	})
}
