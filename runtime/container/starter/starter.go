// Package starter is what the daemon and its program that starts containers say
// to each other.
//
// Containers are started and entered by a small program (cmd/starter), one
// process for each start. It is the only code that links libcontainer: what
// panics, blocks or leaks there ends one start, never the daemon. It is also
// what libcontainer executes again inside the container, and it loads ten times
// as fast as the daemon.
//
// The daemon writes a Request to the program's standard input and reads an
// Answer from its standard output. The program stays the parent of the process
// that it started until its standard input ends: so the daemon can take hold of
// the process before anybody can reap it. Then it exits, and the process becomes
// a child of the daemon, which is a child subreaper.
package starter

import (
	"path/filepath"

	devices "github.com/opencontainers/cgroups/devices/config"
	"github.com/opencontainers/runc/libcontainer/configs"
)

// FirstFile is the descriptor of the first inherited file. Standard input,
// output and error of the process come first, whether or not they are there.
const FirstFile = 3

// Request asks for one process in a container, or for a Filter.
type Request struct {
	Filter *Filter
	// States is the directory of all containers' states. That of ID holds what
	// libcontainer needs to know about the container.
	States, ID string
	// First makes the container with the process as its first one. Otherwise the
	// container runs, and the process is started next to the others.
	First bool
	// Stdio selects which of standard input, output and error are inherited;
	// the others are /dev/null.
	Stdio [3]bool
	// Files is how many further files follow them. The process inherits these from
	// descriptor 3.
	Files int
	// Cgroups is how many of Files, from the first, are tasks files of cgroup v1, in
	// which the process enrols itself. With the first process of a container comes a
	// cgroup namespace whose roots these cgroups are.
	Cgroups int
	Process Process
}

// Filter asks that the processes in and below a cgroup of v2 may use no devices but
// those that the rules allow.
type Filter struct {
	Cgroup  string // directory
	Devices []*devices.Rule
}

// CgroupNamespace is the path by which libcontainer finds the cgroup namespace
// of a container on cgroup v1 while the container is started.
func CgroupNamespace(states, id string) string { return filepath.Join(states, id, "cgroup-ns") }

// Process is what is executed. The first process of a container has the
// capabilities of the container's configuration, and none here.
type Process struct {
	Args, Env    []string
	Cwd          string
	UID, GID     int
	Groups       []int
	Capabilities *configs.Capabilities
}

// Answer says what has come of a Request.
type Answer struct {
	// PID is the process as the host sees it; 0 for a Filter.
	PID int
	// Error says what went wrong; "" when nothing did.
	Error string
}
