package director

import (
	"encoding/json"
	"fmt"
	"time"

	"cupola/server/bosh/manifest"
)

// Kind is what a task does.
type Kind string

// The kinds of tasks.
const (
	Deploy    Kind = "deploy"
	Start     Kind = "start"
	Stop      Kind = "stop"
	Restart   Kind = "restart"
	Recreate  Kind = "recreate"
	Delete    Kind = "delete"
	RunErrand Kind = "run-errand"
	// ExportRelease changes nothing, but no other task of the deployment runs meanwhile.
	ExportRelease Kind = "export-release"
)

// taskPlan is the result of preparing a task: how to change each group. The
// instances' rows contain their desired state.
type taskPlan struct {
	Groups []group // in the manifest's order; those to go, too
	Stage  stage
	// Errand is the group that a run-errand runs; or ErrandJob the job, in all groups
	// that have it. Group and Index limit the instances.
	Errand    string `json:",omitempty"`
	ErrandJob string `json:",omitempty"`
	Group     string `json:",omitempty"`
	Index     *int   `json:",omitempty"`
	// Ran lists the errands that have ended, and Faults why some on running instances
	// failed, or why a disk was not replaced.
	Ran    []ErrandResult `json:",omitempty"`
	Faults []string       `json:",omitempty"`
	// Exited says that the task failed by nothing but the exit codes of errands.
	Exited bool `json:",omitempty"`
	// WhenChanged leaves it out where it ran well as it is.
	WhenChanged bool `json:",omitempty"`
	// KeepAlive leaves its ephemeral disks to its next run.
	KeepAlive bool `json:",omitempty"`
	// Discard lists the GUIDs of instances whose ephemeral disks are deleted while they
	// are stopped, as BOSH deletes VMs.
	Discard []string `json:",omitempty"`
	// NewDisks are the GUIDs of the disks that replace those of instances, by their GUIDs.
	NewDisks map[string]string `json:",omitempty"`
	// SkipDrain leaves out pre-stop and drain scripts.
	SkipDrain bool `json:",omitempty"`
	// Unresponsive lists the GUIDs of instances that are recreated without any stop script.
	Unresponsive []string `json:",omitempty"`
	// DropDisks deletes the disks of deleted instances.
	DropDisks bool `json:",omitempty"`
	// Output is what a task that was done at once has for its client.
	Output string `json:",omitempty"`
	// Exported is what an export-release has made.
	Exported *Exported `json:",omitempty"`
	// Result is what the task says when it has ended well.
	Result string `json:",omitempty"`
}

// stage is how far a task is.
type stage string

// The stages of a task, in their order.
const (
	updating     stage = "" // the first
	postDeploy   stage = "post-deploy"
	errands      stage = "errands"
	defaultWatch       = 5 * time.Minute
)

// group is how an instance group is changed.
type group struct {
	Name        string
	Lifecycle   manifest.Lifecycle
	Serial      bool // it waits for those before it, and those after it for it
	Canaries    int
	MaxInFlight int
	CanaryWatch manifest.Watch
	UpdateWatch manifest.Watch
}

// groupOf is how a group is changed by its manifest and an order.
func groupOf(m *manifest.Manifest, g *manifest.InstanceGroup, o Order) (group, error) {
	u, err := o.update(m.UpdateOf(g))
	n := g.Instances
	return group{
		Name: g.Name, Lifecycle: g.Lifecycle, Serial: u.InSerial(), Canaries: u.CanariesOf(n), MaxInFlight: u.MaxInFlightOf(n),
		CanaryWatch: watch(u.CanaryWatch), UpdateWatch: watch(u.UpdateWatch),
	}, err
}

// watch is how long to wait where the manifest does not say.
func watch(w *manifest.Watch) manifest.Watch {
	if w == nil {
		return manifest.Watch{High: defaultWatch}
	}
	return *w
}

func (p taskPlan) encode() ([]byte, error) { return json.Marshal(p) }

func decodePlan(text []byte) (p taskPlan, err error) {
	if err := json.Unmarshal(text, &p); err != nil {
		return p, broken{fmt.Errorf("read the plan of a task: %w", err)}
	}
	return p, nil
}
