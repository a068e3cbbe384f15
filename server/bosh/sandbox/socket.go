package sandbox

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// socketPair is a socket of which one end is for a container.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	one, theirs := os.NewFile(uintptr(fds[0]), "sandbox"), os.NewFile(uintptr(fds[1]), "sandbox")
	defer one.Close() // FileConn takes a copy
	c, err := net.FileConn(one)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	return c.(*net.UnixConn), theirs, nil
}
