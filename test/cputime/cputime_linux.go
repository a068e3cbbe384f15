// Package cputime measures what work costs a processor. On a busy machine a
// clock says nothing about that, so tests that bound work use this one.
package cputime

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Of runs f and returns the CPU time that its thread used. Goroutines that f
// starts do not count.
func Of(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := used()
	f()
	return used() - began
}

func used() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		panic(err) // it fails for bad arguments alone
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
