package overlay

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/fault"
)

// answerTimeout is how long a file system may take to answer.
const answerTimeout = 2 * time.Second

// softwareDirs are the directories of a machine that hold its programs.
var softwareDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// SilentSoftware lists the mount points below this machine's directories of programs whose file systems do not answer, like
// one of an NFS server that is gone: whatever looks for a file in it waits for ever.
func SilentSoftware() (silent []string, err error) {
	points, err := MountsBelow(softwareDirs...)
	if err != nil {
		return nil, err
	}
	answered := make([]bool, len(points))
	var wg sync.WaitGroup
	for i, point := range points {
		wg.Go(fault.Func("rootfs", func() {
			answered[i] = fault.Within(answerTimeout, "rootfs", func() {
				var st unix.Statfs_t
				_ = unix.Statfs(point, &st) // an error is an answer, too
			})
		}))
	}
	wg.Wait()
	for i, point := range points {
		if !answered[i] {
			silent = append(silent, point)
		}
	}
	return silent, nil
}
