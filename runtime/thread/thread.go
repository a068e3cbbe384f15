// Package thread runs work that spoils the thread it runs on.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"

	"cupola/runtime/fault"
)

// Throwaway runs do on a thread that ends with it, so that do may leave namespaces or give up capabilities. A panic is an
// error, and is logged with the name of a part (see fault.Guard).
func Throwaway(part string, do func() error) error {
	return Borrow(part, func() (restored bool, err error) { return false, do() })
}

// Borrow is Throwaway for what may put the thread back as it was: if do reports that it did, the thread goes on. It is
// never the process's first thread: that one cannot end, and /proc/self and /proc/net show everyone what becomes of it.
func Borrow(part string, do func() (restored bool, err error)) error {
	res := make(chan error, 1)
	fault.Go(part, func() {
		runtime.LockOSThread() // a thread ends with its goroutine if it is not unlocked
		restored := false
		if unix.Gettid() == unix.Getpid() {
			res <- Borrow(part, do) // this goroutine keeps the first thread busy meanwhile
			restored = true
		} else {
			res <- fault.Guard(part, func() (err error) {
				restored, err = do()
				return err
			})
		}
		if restored {
			runtime.UnlockOSThread()
		}
	})
	return <-res
}
