// Package doctor checks whether a machine can run cupola, and says how to mend
// what is amiss. What can be tried is tried for real, in namespaces and
// directories that end with the try: a kernel's configuration tells little
// about what a container engine, a hardened kernel or a mount option forbids.
package doctor

import (
	"net/netip"

	"cupola/rootfs"
	"cupola/runtime/network"
)

// Level says how a check ended.
type Level int

// The levels. A daemon does not work, or not for long, where a check fails;
// with a warning it works with less.
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
	Mend   string `json:"mend,omitempty"` // the command or setting that mends it; "" where all is well
}

// Options are what the daemon would run with.
type Options struct {
	DataDir     string // absolute; it need not be there
	HTTP, HTTPS string // addresses, or "off"
	Domain      string // of apps
	// Subnet is what containers would have their addresses in, and what overlaps it.
	Subnet     func() (subnet netip.Prefix, inWay []network.Use, err error)
	LinkPrefix string       // of the host's ends of containers' links
	IDMap      rootfs.IDMap // of containers
	Tools      []string     // of minifs
}

// Count adds up the results of each level.
func Count(results []Result) (ok, warn, fail int) {
	var n [3]int
	for _, r := range results {
		n[r.Level]++
	}
	return n[OK], n[Warn], n[Fail]
}

func fine(detail string) Result            { return Result{Level: OK, Detail: detail} }
func warning(detail, mend string) Result   { return Result{Level: Warn, Detail: detail, Mend: mend} }
func failure(detail, mend string) Result   { return Result{Level: Fail, Detail: detail, Mend: mend} }
func failed(err error, mend string) Result { return failure(err.Error(), mend) }
