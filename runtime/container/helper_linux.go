package container

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mountHelper mounts, at dir, what the directory source holds, for all containers
// to share, unless it is there as source is now. A bind mount of source would
// show where it lies on the host in every container's mountinfo. This overlay of
// it and an empty directory shows "/", and its options name descriptors. It costs
// no memory: the page cache is that of the files in source.
func mountHelper(source, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if is(dir, unix.OVERLAYFS_SUPER_MAGIC) && isMountPoint(dir) {
		// Who deletes the data directory of what still runs deletes what is below the
		// overlay, which cannot be read then.
		if same, err := sameFiles(source, dir); same || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// Containers that run have their own clones of it, and keep the programs that
		// they know.
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
	files, err := openDirs(source, dir)
	defer closeAll(files)
	if err != nil {
		return err
	}
	// Without a directory to write to, an overlay needs two others.
	options := fmt.Sprintf("lowerdir=/proc/self/fd/%d:/proc/self/fd/%d", files[0].Fd(), files[1].Fd())
	if err := unix.Mount("overlay", dir, "overlay", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount overlay on %s: %w", dir, err)
	}
	return nil
}

func openDirs(names ...string) (files []*os.File, err error) {
	for _, name := range names {
		f, err := os.OpenFile(name, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// sameFiles reports whether the files of two directories have the same names,
// sizes, modes and times.
func sameFiles(a, b string) (bool, error) {
	var all [2]map[string]string
	for n, dir := range []string{a, b} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return false, err
		}
		all[n] = map[string]string{}
		for _, e := range entries {
			info, err := os.Lstat(filepath.Join(dir, e.Name()))
			if errors.Is(err, fs.ErrNotExist) {
				continue // listed by an overlay whose directory has changed
			}
			if err != nil {
				return false, err
			}
			all[n][e.Name()] = fmt.Sprint(info.Size(), info.Mode(), info.ModTime().UnixNano())
		}
	}
	return maps.Equal(all[0], all[1]), nil
}

func isMountPoint(dir string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
