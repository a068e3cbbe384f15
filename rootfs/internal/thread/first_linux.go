package thread

import "golang.org/x/sys/unix"

func first() bool { return unix.Gettid() == unix.Getpid() }
