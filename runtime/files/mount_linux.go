package files

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// size bounds the memory of a container: two generations of the most that may
// be, with a page for each of many small files.
const size = "size=64m,nr_inodes=65536"

// mount mounts a tmpfs on dir that the group base can pass.
func mount(dir string, base uint32, programs bool) error {
	var flags uintptr = unix.MS_NOSUID | unix.MS_NODEV
	if !programs {
		flags |= unix.MS_NOEXEC
	}
	opts := fmt.Sprintf("%s,mode=0710,uid=0,gid=%d", size, base)
	err := unix.Mount("tmpfs", dir, "tmpfs", flags, opts+",noswap")
	if errors.Is(err, unix.EINVAL) { // before Linux 6.4
		err = unix.Mount("tmpfs", dir, "tmpfs", flags, opts)
	}
	return err
}

// hold makes dir a private mount, whose changes no other namespace sees.
func hold(dir string) error {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, 0, &st); err != nil {
		return err
	}
	if st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return nil
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", dir, err)
	}
	return unix.Mount("", dir, "", unix.MS_PRIVATE, "")
}

// unmount takes every mount off dir; one that is busy goes with its last user.
func unmount(dir string) error {
	for {
		err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			err = unix.Unmount(dir, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EPERM):
			return nil // nothing is mounted there, or we could not have mounted it
		case err != nil:
			return err
		}
	}
}

func used(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize, nil
}
