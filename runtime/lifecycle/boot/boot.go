//go:build linux

// Package boot is the first program of every container: it joins the cgroups
// the daemon opened for it, installs the seccomp filter the daemon compiled,
// and becomes the app.
//
// Both steps happen here, and not in libcontainer's init, because they are
// what makes a container slow to start: a filter compiled by libseccomp takes
// 22–30 ms, and a cgroup v1 attach by a stranger waits for an RCU grace
// period, which a thread that moves itself does not.
package boot

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"cupola/runtime/lifecycle/launcher"
)

// Exit codes of Main. The last two are a shell's.
const (
	ExitSetup       = 125 // the sandbox could not be completed; argv did not run
	ExitCannotRun   = 126 // argv[0] was found and the kernel refused it
	ExitNotFound    = 127 // argv[0] was not found
	launcherCommand = "launcher"
)

// Main completes the sandbox as args (without the program's name) ask and
// executes the command after the flags. It returns, with an exit code, only
// when that was not possible; the reason is then on standard error.
//
//	[--seccomp FILE] [--cgroup-fds 3,4,5] [--] argv…
func Main(args []string) int {
	// The filter and a cgroup v1 move count for one thread: the one that
	// must also call execve.
	runtime.LockOSThread()
	o, err := parse(args)
	if err != nil {
		return fail(ExitSetup, err)
	}
	if err := joinCgroups(o.cgroupFDs); err != nil {
		return fail(ExitSetup, err)
	}
	closeOnExec()
	if o.seccomp != "" {
		if err := confine(o.seccomp); err != nil {
			return fail(ExitSetup, err)
		}
	}
	return become(o.argv)
}

// become executes argv. The launcher is run in this process, since it is the
// same program and a second start of it would cost a millisecond.
func become(argv []string) int {
	if isSelf(argv[0]) && filepath.Base(argv[0]) == launcherCommand {
		return launcher.Main(argv)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return fail(ExitCannotRun, err)
		}
		return fail(ExitNotFound, err)
	}
	err = syscall.Exec(path, argv, os.Environ())
	return fail(ExitCannotRun, fmt.Errorf("exec %s: %w", path, err))
}

// isSelf reports whether path is the running program.
func isSelf(path string) bool {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false
	}
	other, err := os.Stat(path)
	return err == nil && os.SameFile(self, other)
}

func fail(code int, err error) int {
	_, _ = os.Stderr.WriteString("init: " + err.Error() + "\n")
	return code
}
