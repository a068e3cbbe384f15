// Package container runs one OCI container per ID: no runtime binary, no shim,
// no helper next to the container. In it a small init starts the app, reaps and
// forwards signals. A separate program makes the container and ends with the
// start, so that it can neither end nor block the daemon: the starter, which runs
// libcontainer (see package starter), or the launcher, which does without (see
// package launch).
//
// A container outlives the daemon. Its state directory is written before its
// first effect in the kernel, so whatever a killed daemon left, half-made or
// running, the next Engine's List finds and Remove takes away.
//
// Every container has its own user, pid, ipc, uts, cgroup and mount namespace,
// no capability for processes that are not root, no_new_privs, a
// deny-by-default seccomp filter, masked and read-only kernel paths and a
// cgroup that refuses devices and swap.
package container

import (
	"log/slog"
	"os"
	"time"
)

// Config says where an Engine keeps its state and what its containers share.
type Config struct {
	// Dir is the state directory, made 0711; the state itself is the daemon's
	// alone. One Engine owns it. Nothing in it outlives a boot, so that it may
	// lie in /run, where starts spare a disk's file system.
	Dir string
	// CgroupParent names the cgroup below each hierarchy's root that holds one
	// cgroup per container, for example "cupola". One Engine owns it.
	CgroupParent string
	// IDMap is the user and group range of containers whose Spec names none.
	IDMap IDMap
	// Groups are cgroups below the parent that containers may share, by Spec.Group;
	// each bounds what its containers use together. One that is not named any
	// longer goes when New finds it empty.
	Groups []Group
	// HelperDir is a host directory that holds the static program "init" (see
	// cmd/lifecycle/init), which attaches itself to the cgroups, installs the
	// seccomp filter and starts the process. It is mounted read-only at
	// contract.ProgramDir. New writes the filter into it as seccomp.bpf.
	HelperDir string
	// Kind selects what starts containers; "" is Launch. Whatever starts a container,
	// an Engine of either kind finds, enters and removes it.
	Kind Kind
	// Starter and Launcher are the programs that start containers; "" is the one that
	// this binary carries.
	Starter, Launcher string
	// StartTimeout bounds one start of a container or of a process in it; 0 means
	// 50 s.
	StartTimeout time.Duration
	// Log receives what an operator must know; nil discards it.
	Log *slog.Logger
	// NoPIDFDInfo makes an Engine behave as before Linux 6.15, where a pidfd
	// has no exit code of a process that another process reaped.
	NoPIDFDInfo bool
}

// Kind is what starts containers.
type Kind string

// The kinds of Engines.
const (
	Launch Kind = "launch" // cupola's own program, the default; where CheckLaunch finds an obstacle, as Runc
	Runc   Kind = "runc"   // libcontainer, as runc does
)

// IDMap maps the container's IDs 0..Size-1 to the host's Base..Base+Size-1.
type IDMap struct{ Base, Size uint32 }

// Mount is a bind mount of a host path, always nosuid and nodev. Without a source
// it is an empty read-only directory, which hides what is mounted there before it.
type Mount struct {
	Source, Destination string
	ReadOnly            bool
	NoExec              bool
	// Recursive also shows what is mounted below Source, with the same restrictions.
	Recursive bool
}

// Limits bound a container; 0 means no limit. Swap is never allowed.
type Limits struct {
	MemoryBytes int64
	// CPUShares is the weight of cgroup v1: 1024 is one app's ordinary share.
	CPUShares uint64
	CPUs      float64 // processor time per time, independent of other containers
	Pids      int64   // besides the container's init
}

// Group is a cgroup that containers share. Its name is made like an ID.
type Group struct {
	Name string
	// MemoryBytes bounds the memory of all together; 0 means no limit. One below
	// what they use when New is called is put off until a later New.
	MemoryBytes int64
	CPUShares   uint64 // against other groups; 0 means cgroup's default
}

// Process is what runs in a container.
type Process struct {
	Args, Env []string
	// Cwd is made when it is missing; "" is the root directory.
	Cwd      string
	UID, GID uint32
	// Groups are supplementary groups.
	Groups []uint32
	// Nofile is the limit of open files, cut to the daemon's own hard limit;
	// 0 leaves the daemon's limit.
	Nofile uint64
	// Core is the size of core files, cut likewise; 0 has none written.
	Core uint64
	// Nproc is the limit of processes and threads of the user in the container,
	// cut likewise; 0 leaves the container's own limit. The container's init is one
	// of its first process's user.
	Nproc uint64
	// Capabilities of processes that are not root, without CAP_; limited to
	// those that root has in a container.
	Capabilities []string
}

// Spec describes a container to start.
type Spec struct {
	// ID is made of letters, digits, underscore, plus, minus and period.
	ID string
	// Rootfs is an absolute path without symbolic links. Every directory above
	// it must let the mapped root user pass (mode o+x).
	Rootfs   string
	Hostname string
	// Process is started by the container's init, which reaps, forwards signals
	// and ends as the process does. Without Args the init is alone.
	Process Process
	Mounts  []Mount
	// Lifecycle shows the helper's programs at contract.LifecycleDir, too.
	Lifecycle bool
	// NetNS is the path of a network namespace; "" gives an empty one.
	NetNS string
	// TLSPorts are ports at which the init listens, and starts what terminates TLS
	// (contract.CommandProxy) when a client comes.
	TLSPorts []uint16
	Limits   Limits
	// Users are the users of the host that the container's are; the zero value is
	// Config.IDMap.
	Users IDMap
	// Group is one of Config.Groups; "" is none.
	Group string
	// Stdout and Stderr are inherited as they are; nil is /dev/null. A FIFO opened
	// O_RDWR lets the container outlive the daemon's end of it.
	Stdout, Stderr *os.File
}

// Stdio are the files of a process started by Exec; nil is /dev/null.
type Stdio struct{ In, Out, Err *os.File }

// State is what an Engine knows about a container.
type State struct {
	ID string
	// PID is the container's init as the host sees it; 0 when none was recorded.
	// Of a container that a daemon before inits started, it is the process.
	PID int
	// StartTicks is the init's start time in clock ticks since boot: together
	// with PID it names one process for good.
	StartTicks uint64
	// Alive is false for a container that has ended and for one that was never
	// brought to run its process: both only wait for Remove.
	Alive bool
}

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code, 128+Signal when a signal ended the process.
	Code int
	// Signal is the signal that killed the process, or 0. For the process that
	// a container was started with, the init reports it only in Code, as
	// Garden does.
	Signal int
	// OOM says that the kernel killed a process of the container for memory.
	OOM bool
	// Known is false when the exit status is lost; Code and Signal are then 0.
	Known bool
}

// Stats are a container's use of resources.
type Stats struct {
	// CPU is the time used by all processes so far.
	CPU time.Duration
	// MemoryBytes leaves out the page cache that can be dropped at once.
	// MemoryLimitBytes is 0 when there is no limit.
	MemoryBytes, MemoryLimitBytes uint64
	PeakBytes                     uint64 // of memory, page cache included; 0 where the kernel does not tell (cgroup v2 before Linux 5.19)
	Pids                          uint64
}
