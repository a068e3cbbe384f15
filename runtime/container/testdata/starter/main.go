// The starter command is the program that starts containers, but panics, quits or
// hangs for a container of that name, having made children of the kinds that
// libcontainer makes: one in its process group, and one that leads a session in
// another pid namespace.
package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) > 1 { // a child
		hang()
	}
	_, id, _ := strings.Cut(os.Args[0], ":")
	if fault := map[string]func(){"panic": breakDown, "hang": hang, "quit": func() { os.Exit(0) }}[id]; fault != nil {
		leave(nil)
		leave(&syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWPID})
		fault()
	}
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(filepath.Join(filepath.Dir(self), "starter"), os.Args, os.Environ())
	}
	panic(err)
}

func leave(attr *syscall.SysProcAttr) {
	cmd := exec.Command("/proc/self/exe", "child")
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// breakDown panics as libcontainer does when a mount is asked for late, in a
// goroutine that does not recover.
func breakDown() {
	requests := make(chan int)
	close(requests)
	go func() { requests <- 1 }()
	hang()
}

func hang() {
	for {
		_ = syscall.Pause()
	}
}
