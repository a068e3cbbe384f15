package bulkhead

import (
	"fmt"
	"syscall"
)

// Limits are the budgets of the listeners, in descriptors; each connection is
// one. Together they are half of what the process may open: the other half is
// the reserve of the database, blobs, health checks, containers (some ten each)
// and their starts, which no client can use up.
type Limits struct {
	Files     int // that the process may open
	Strangers int // connections on which no request has come yet
	API       int // connections of the API's clients, and their requests under way
	Apps      int // connections of apps' clients, HTTP or of TCP routes
	Backends  int // connections to instances, and requests under way to them
	SSH       int // connections of SSH clients
}

// maxFiles is beyond what the budgets grow with: 10,240 connections of clients
// and as many to instances take some 1 GiB.
const maxFiles = 64 << 10

// LimitsFor derives the budgets from how many files the process may open.
func LimitsFor(files uint64) Limits {
	n := int(min(files, maxFiles))
	edge := n / 2
	return Limits{Files: n, Strangers: atLeast(edge / 8), API: atLeast(edge / 4), Apps: atLeast(edge * 9 / 32), Backends: atLeast(edge * 9 / 32), SSH: min(256, atLeast(edge/16))}
}

// atLeast keeps a budget usable where files are few.
func atLeast(n int) int { return max(n, 8) }

// ProcessLimits derives the budgets from the process's own limit of open files.
// Go's runtime has raised the soft limit to the hard one at the start, and gives
// child processes the original.
func ProcessLimits() (Limits, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return Limits{}, fmt.Errorf("read the limit of open files: %w", err)
	}
	return LimitsFor(l.Cur), nil
}
