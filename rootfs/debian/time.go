package debian

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// setTime sets access and modification time of path itself, also of a symbolic link.
func setTime(path string, at time.Time) error {
	ts := unix.NsecToTimespec(at.UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "utimensat", Path: path, Err: err}
	}
	return nil
}
