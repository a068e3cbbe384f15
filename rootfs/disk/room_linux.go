package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// CheckRoom fails where the file system of a directory has less left than what
// takes there, in bytes.
func CheckRoom(dir, what string, need int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < need {
		return fmt.Errorf("%s has %.1f MB free; %s takes %.1f MB", dir, float64(free)/1e6, what, float64(need)/1e6)
	}
	return nil
}
