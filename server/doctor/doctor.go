// Package doctor checks whether a machine can run cupola, and suggests fixes. It
// tries features for real, in temporary namespaces and directories: a kernel's
// configuration does not show what a container engine, a hardened kernel or a
// mount option forbids.
package doctor

import (
	"context"
	"net/netip"

	"cupola/runtime/network"
	"cupola/runtime/users"
)

// Level is the severity of a result.
type Level int

// The levels. With Fail the daemon does not work, or not for long; with Warn it
// works with restrictions.
const (
	OK Level = iota
	Warn
	Fail
)

// String is "OK", "warn" or "fail".
func (l Level) String() string { return [...]string{"OK", "warn", "fail"}[l] }

// MarshalText is String in lower case, for JSON.
func (l Level) MarshalText() ([]byte, error) {
	return []byte([...]string{"ok", "warn", "fail"}[l]), nil
}

// Result is what one check found.
type Result struct {
	Name   string `json:"name"`
	Level  Level  `json:"level"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // a command or setting; "" when OK
}

// Options is the configuration that the daemon would run with.
type Options struct {
	DataDir     string // absolute; it need not exist
	HTTP, HTTPS string // addresses, "off", or "" for those of the daemon that runs
	Domain      string // of apps
	// Subnet returns the subnet of containers' addresses, and what overlaps it.
	Subnet     func() (subnet netip.Prefix, inWay []network.Use, err error)
	LinkPrefix string      // of the host's ends of containers' links
	IDMap      users.Range // of containers
	Tools      []string    // of minifs
	Elsewhere  bool        // no containers run on this machine
	Engine     string      // of containers
	NoLaunch   error       // why it cannot be launch; nil if it can
	// Trial starts a container of each stack, with its files below dir, and returns what went wrong by the stack's name; the
	// error is of what all containers need.
	Trial func(ctx context.Context, dir string) (outcomes map[string]error, err error)
	// Clusters try the Kubernetes clusters that are cells, by their names. An error comes with what to do about it.
	Clusters map[string]func(context.Context) (mend string, err error)
}

// Count returns the number of results at each level.
func Count(results []Result) (ok, warn, fail int) {
	var n [3]int
	for _, r := range results {
		n[r.Level]++
	}
	return n[OK], n[Warn], n[Fail]
}

func fine(detail string) Result           { return Result{Level: OK, Detail: detail} }
func warning(detail, fix string) Result   { return Result{Level: Warn, Detail: detail, Fix: fix} }
func failure(detail, fix string) Result   { return Result{Level: Fail, Detail: detail, Fix: fix} }
func failed(err error, fix string) Result { return failure(err.Error(), fix) }
