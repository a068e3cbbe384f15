package lrp

import "time"

// Kind distinguishes instances and tasks.
type Kind string

// The kinds of container.
const (
	KindInstance Kind = "instance"
	KindTask     Kind = "task"
)

// Container is one piece of work for a cell: an instance of a Desired, or a
// Task.
type Container struct {
	GUID        string // instance GUID or task GUID; unique for ever
	Kind        Kind
	Domain      string
	ProcessGUID string // KindInstance
	Index       int    // KindInstance
	CellID      string // where it is; set when it is started
	RunInfo
}

// Phase is how far a cell has got with a container.
type Phase string

// The phases of a container.
const (
	PhaseCreating Phase = "creating"
	PhaseStarting Phase = "starting" // runs, but its check has not passed yet
	PhaseRunning  Phase = "running"
	PhaseStopping Phase = "stopping"
	PhaseExited   Phase = "exited" // Event with the exit was sent, or is about to be
)

// ContainerStatus is the state of a cell's container.
type ContainerStatus struct {
	GUID        string
	Kind        Kind
	ProcessGUID string
	Index       int
	Phase       Phase
	Address     string
	TLSPorts    bool // it has those of MapPorts
	// ServerCertificateUntil is when the certificate of its ServerNames ends, which is renewed before; zero: it has none.
	ServerCertificateUntil time.Time
	Ready                  bool
	Role                   Role
	MemoryMB               int
	DiskMB                 int
	CellID                 string
	RootFS                 string
	FilesDigest            string            // of its Files; "" where there is no place for any
	LogTags                map[string]string // of its lines; not to be changed

	Domain        string
	MaxPids       int
	RequiredTags  []string // of its Constraint
	VolumeDrivers []string
	Frozen        bool // its processes have been stopped where they are, and go on later
	Failed        bool // it has ended, and not well
}

// Event is a cell's report about a container. A container's events come in
// order; EventExited is its last.
type Event struct {
	Type    EventType
	GUID    string
	Kind    Kind
	Key     Key // KindInstance
	At      time.Time
	Address string // EventRunning
	// TLSPorts says, with EventRunning, that the container has those of MapPorts.
	TLSPorts bool
	Exit     Exit // EventExited
	Result   []byte
	Outputs  []Blob
}

// EventType says what happened.
type EventType string

// The events of a container.
const (
	EventRunning  EventType = "running" // its check passed for the first time
	EventReady    EventType = "ready"
	EventNotReady EventType = "not-ready"
	EventActive   EventType = "active"  // its Role is Active from now on
	EventPassive  EventType = "passive" // its Role is Passive from now on
	EventExited   EventType = "exited"  // ended and cleaned up, whatever the cause
)

// Exit says how a container ended.
type Exit struct {
	Code    int    // of the action; -1 where the kernel did not tell
	Failed  bool   // tasks: the work was not done. Instances: always a crash unless Stopped
	Stopped bool   // because Stop was called
	Reason  string // in Diego's words: "APP/PROC/WEB: Exited with status 4"
	Unknown bool   // it ran, and its exit status is lost: no daemon was running
}

// Stats is what a container uses now.
type Stats struct {
	CPU         time.Duration // since it started
	CPUPercent  float64       // of one core, since the last look
	Entitlement float64       // of its CPU share, 1 = all of it
	MemoryBytes uint64
	MemoryQuota uint64
	DiskBytes   uint64
	DiskQuota   uint64
	LogRate     uint64 // bytes a second
	Uptime      time.Duration
	FilesDigest string    // of its Files; "" where there is no place for any
	FilesSince  time.Time // when it got them
	Waits       string    // why it does not start yet, where the cell knows a reason; then nothing else is set
}

// Cell is the presence of a cell: what it is, has and offers.
type Cell struct {
	ID         string
	MemoryMB   int
	DiskMB     int
	Containers int
	RootFSes   []string // names for preloaded:
	// RootFSProviders are the schemes of RootFSes that the cell has not preloaded.
	RootFSProviders []string
	Tags            []string // compared without case; each under 64 characters
	// RequiredTags, which are among Tags, keep workloads away that do not require
	// all of them: Diego's placement_tags. The others are its
	// optional_placement_tags.
	RequiredTags []string
	// Zone is where the cell is: the instances of a process are divided evenly
	// between zones.
	Zone          string
	VolumeDrivers []string
	// Leaving says that the configuration does not name the cell any longer: it
	// takes nothing new, and what is on it goes to others.
	Leaving bool
	// Unreachable says that it is not known what the cell has: it takes nothing new,
	// and what the rows say of it holds until it is.
	Unreachable bool
	// Problem is why the cell is unreachable, or why requests do not reach what runs on it; "" if neither is so.
	// Mend is what an operator does about it.
	Problem, Mend string
	// Tunnel says how requests reach what runs on a cluster; "" where the cell is none.
	Tunnel TunnelState
	// NoStaging says that the cell stages no apps.
	NoStaging bool
}

// TunnelState is that of the tunnel into a cluster.
type TunnelState string

// The states of a tunnel.
const (
	TunnelUnused TunnelState = "unused" // nothing that needs it runs there
	TunnelClosed TunnelState = "closed" // requests wait for it, or fail
	TunnelOpen   TunnelState = "open"
)

// Suits reports whether a cell may run what has the constraint: the cell has all
// tags that are required and none that is disallowed, and all that it requires
// are required.
func (c Cell) Suits(of Constraint) bool {
	return of.Allows(c.Tags) && (Constraint{Require: c.RequiredTags}).Allows(of.Require)
}

// OptionalTags are the tags of a cell that it does not require.
func (c Cell) OptionalTags() (tags []string) {
	for _, tag := range c.Tags {
		if (Constraint{Disallow: c.RequiredTags}).Allows([]string{tag}) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// CellUse is a cell with what its containers have of it.
type CellUse struct {
	Cell
	UsedMemoryMB, UsedDiskMB, UsedContainers int
}

// LogLine is one line of output of a container, or one that the cell says
// about it (Source CELL or HEALTH).
type LogLine struct {
	Target LogTarget
	At     time.Time
	Err    bool
	Text   []byte
}
