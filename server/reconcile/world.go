package reconcile

import (
	"time"

	"cupola/runtime/lrp"
)

// World is all that a Plan depends on.
type World struct {
	Now     time.Time
	Desired []lrp.Desired
	Actuals []lrp.Actual
	Work    []Work
	Tasks   []lrp.Task
	Cells   []CellState
	// Waits are process GUIDs whose image or buildpack is still being fetched.
	Waits map[string]bool
	// Stale are domains in which nothing is stopped for not being desired.
	Stale map[string]bool
	// Kept are GUIDs of processes and tasks that keep running though no readable row
	// desires them.
	Kept map[string]bool
}

// CellState is a cell with its containers.
type CellState struct {
	lrp.Cell
	Containers []lrp.ContainerStatus
}

// Work is a container that an owner, a build or an app's task, needs to run once.
type Work struct {
	GUID      string // the owner's, and its Task's
	Domain    string
	Run       lrp.RunInfo
	Waits     bool   // something it needs is on its way
	Fault     string // why it cannot run, for the owner; "" when it can
	Cancelled bool   // the owner no longer wants it
	Overdue   string // why it takes too long; "" if it does not
	Begun     bool   // the owner knows that it has begun
	Inputs    string // of a build: see cf.Build
	Reuse     string // of a build: the GUID of the droplet that staging would make again
}
