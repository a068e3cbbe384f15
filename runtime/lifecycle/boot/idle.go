//go:build linux

package boot

import (
	"os"
	"os/signal"
	"syscall"
)

// Idle is the first process of a container whose work none of its processes
// spans: it reaps what others leave behind, until the container is removed.
func Idle() {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for range children {
		reap()
	}
}

func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 && err != syscall.EINTR {
			return
		}
	}
}
