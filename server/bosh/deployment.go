package bosh

import (
	"io/fs"

	"cupola/runtime/contract"
	"cupola/server/bosh/bpm"
	"cupola/server/bosh/link"
	"cupola/server/bosh/manifest"
)

// Deployment is all that an engine has to know: nothing is left to resolve.
type Deployment struct {
	Name   string
	Tags   map[string]string
	Groups []Group
	// Provides are the links that its jobs offer; those that are shared are for
	// other deployments.
	Provides []link.Provider
	Consumes []link.Foreign   // the links of other deployments that its jobs use
	Aliases  []manifest.Alias // further names in DNS
	// Foreign are the texts in links of other deployments: any may be a secret.
	Foreign []string
	// Literal are the texts of properties that are credentials by their names.
	Literal []string
	// Ignored are lines of monit files that have no effect, after their jobs, without Literal.
	Ignored []string
}

// Group is an instance group.
type Group struct {
	Name               string
	Lifecycle          manifest.Lifecycle
	AZs                []string
	Address            string // in DNS: leads to all instances that are ready
	Instances          []Instance
	Jobs               []Job
	Update             manifest.Update
	PersistentDiskMB   int // 0 for none
	PersistentDiskType string
	EphemeralDiskMB    int  // 0 for no bound
	Tmpfs              bool // rendered files lie in memory
	MigratedFrom       []manifest.Migrated
	RequiredService    string            // what it waits for; "" for nothing
	Settings           manifest.Settings // labels, annotations, affinity and other settings for Kubernetes
	Hash               string            // changes when any instance's does
}

// Instance is one of a group.
type Instance struct {
	manifest.Instance
	Address string     // in DNS
	Jobs    []Rendered // as many as the group has, in its order
	// Hash changes with all for which a running instance has to be replaced.
	Hash string
}

// Rendered is what one instance has of a job.
type Rendered struct {
	Files     []JobFile
	Processes []Process
}

// JobFile is a rendered template. It belongs to root and the group vcap.
type JobFile struct {
	Path    string // below /var/vcap/jobs/<job>
	Mode    fs.FileMode
	Content []byte
}

// Job is a job of a group.
type Job struct {
	Name    string
	Release string
	Version string // of the release
	Image   manifest.Image
	Pinned  string // the image by its digest; "" where that is not known
	Addon   string // the addon that placed it, or ""
	// Packages are what its containers have at /var/vcap/packages besides those of the
	// image: the compiled packages of uploaded releases.
	Packages []Package
	// Processes are those of the first instance; Varies says that others have
	// other ones.
	Processes     []Process
	Varies        bool
	Ports         []manifest.Port
	Scripts       Scripts
	Scaling       *manifest.Scaling          // nil where the manifest says nothing
	PostStart     []string                   // what has to succeed before post-start; nil for nothing
	ActivePassive map[string]*manifest.Probe // by container or process
	Envs          []map[string]any           // Kubernetes' EnvVars that have no plain value
	Security      map[string]any             // Kubernetes' SecurityContext
}

// Package is a compiled package. Its archive is a blob.
type Package struct{ Name, Digest string }

// Process is a container: a process of a job with its defaults, what the
// manifest has laid over it, and limits.
type Process struct {
	bpm.Process
	Container           string  // its name
	CPUs                float64 // 0 for no bound
	Readiness, Liveness *manifest.Probe
	// Monit are the processes of a job that has a monit file instead of BPM's: one container runs them all.
	Monit []contract.MonitCheck `json:",omitempty"`
	// Conditions are those of the monit file of a job for BPM.
	Conditions []contract.MonitCondition `json:",omitempty"`
}

// Active is the probe that reports whether the instance is the active one, by a
// process; nil is none. It is found by the names of the container and of the
// process.
func (j *Job) Active(p *Process) *manifest.Probe {
	if probe := j.ActivePassive[p.Container]; probe != nil {
		return probe
	}
	return j.ActivePassive[p.Name]
}

// Scripts are those of BOSH's that a job has in bin.
type Scripts struct{ PreStart, PostStart, PostDeploy, PreStop, Drain, PostStop bool }
