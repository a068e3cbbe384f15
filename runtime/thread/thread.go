// Package thread runs work that spoils the thread it runs on.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"

	"cupola/runtime/fault"
)

// Throwaway runs do on a thread that ends with it, so that do may leave namespaces or give up capabilities. It is never
// the process's first thread: that one cannot end, and /proc/self would go on showing what became of it. A panic is an error,
// and is logged with the name of a part (see fault.Guard).
func Throwaway(part string, do func() error) error {
	res := make(chan error, 1)
	fault.Go(part, func() {
		runtime.LockOSThread() // not unlocked, unless nothing was done: that is what ends the thread
		if unix.Gettid() != unix.Getpid() {
			res <- fault.Guard(part, do)
			return
		}
		res <- Throwaway(part, do) // this goroutine keeps the first thread busy meanwhile
		runtime.UnlockOSThread()
	})
	return <-res
}
