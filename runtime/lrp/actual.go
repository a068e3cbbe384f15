package lrp

import "time"

// ActualState is the state of an ActualLRP, in Diego's words.
type ActualState string

// The states of an Actual.
const (
	Unclaimed ActualState = "UNCLAIMED"
	Claimed   ActualState = "CLAIMED"
	Running   ActualState = "RUNNING"
	Crashed   ActualState = "CRASHED"
)

// Actual is Diego's ActualLRP: one instance of a Desired.
type Actual struct {
	Key
	Domain         string
	Owner          Owner  // the Desired's
	InstanceGUID   string // "" while unclaimed
	CellID         string // "" while unclaimed
	State          ActualState
	CrashCount     int
	CrashReason    string // at most 1024 characters
	PlacementError string // at most 1024 characters
	Since          time.Time
	Address        string // of the container; "" until it runs
	Ports          []uint16
	TLSPorts       bool // it has those of MapPorts
	Ready          bool // the readiness check passes: routable
	Role           Role // since it runs
	Stopping       bool // the cell is stopping it; the row is deleted when it has ended
	Tag            Tag  // of the row as it was read; the store keeps it
}

// Routable reports whether requests may go to the instance: it runs, its
// readiness check passes, it is not stopping and has an address.
func (a *Actual) Routable() bool {
	return a.State == Running && a.Ready && !a.Stopping && a.Address != ""
}

// PortMappings are the ports of the container, with their TLS ports.
func (a *Actual) PortMappings() []PortMapping {
	if a.TLSPorts {
		if mappings, err := MapPorts(a.Ports); err == nil {
			return mappings
		}
	}
	return PlainPorts(a.Ports)
}

// Role is what an instance is among those of which one serves at a time.
type Role string

// The roles. NoRole is that of an instance whose container has no checks that
// would tell.
const (
	NoRole  Role = ""
	Active  Role = "active"
	Passive Role = "passive"
)

// Tag is Diego's modification tag: which of two looks at one row is the newer.
type Tag struct {
	Epoch string // of the row: another one is another row
	Index uint32 // grows with every change
}

// CanBecome reports whether Diego allows the transition of an Actual's state
// (bbs models, actual_lrp.go). A crash loop leaves CRASHED only by UNCLAIMED.
func (s ActualState) CanBecome(next ActualState) bool {
	switch s {
	case Unclaimed:
		return next == Unclaimed || next == Claimed || next == Running
	case Claimed, Running:
		return s != Running || next != Claimed
	case Crashed:
		return next == Unclaimed
	}
	return false
}

// Truncate cuts a crash reason or placement error to Diego's 1024 characters.
func Truncate(s string) string {
	const limit, mark = 1024, "(truncated)"
	if len(s) <= limit {
		return s
	}
	return s[:limit-len(mark)] + mark
}
