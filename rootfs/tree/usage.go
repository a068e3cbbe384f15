package tree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Unused is something in a cache that nothing uses, and that can be made or fetched
// again.
type Unused struct {
	Name  string
	Bytes int64     // on the disk
	Used  time.Time // last
}

// DiskBytes is how much room files and directories take on the disk. A file with
// several names counts once. What is mounted below them counts nothing, nor what
// disappears meanwhile.
func DiskBytes(ctx context.Context, paths ...string) (sum int64, err error) {
	return Meter{}.DiskBytes(ctx, paths...)
}

// Meter has the files that were measured, by device and inode.
type Meter map[[2]uint64]bool

// DiskBytes is DiskBytes without what the Meter has measured.
func (m Meter) DiskBytes(ctx context.Context, paths ...string) (sum int64, err error) {
	for _, path := range paths {
		mount, known := mountID(path)
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return ctx.Err()
			}
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			if d.IsDir() && known {
				if of, ok := mountID(name); ok && of != mount {
					return fs.SkipDir
				}
			}
			info, err := d.Info()
			if err != nil {
				return nil //nolint:nilerr // it has just been deleted
			}
			if n, file := allocated(info); !m[file] {
				m[file] = true
				sum += n
			}
			return nil
		})
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// Allocated is the room that a file takes on the disk.
func Allocated(info fs.FileInfo) int64 {
	n, _ := allocated(info)
	return n
}

func allocated(info fs.FileInfo) (n int64, file [2]uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), file
	}
	const block = 512 // of st_blocks, whatever the file system's is
	return st.Blocks * block, [2]uint64{st.Dev, st.Ino}
}

// mountID tells mounts apart, also those that show the same file system.
func mountID(path string) (id [2]uint64, ok bool) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st); err != nil {
		return id, false
	}
	id = [2]uint64{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor)}
	if st.Mask&unix.STATX_MNT_ID != 0 { // Linux 5.8
		id[1] = st.Mnt_id
	}
	return id, true
}

// List lists the entries of a directory as unused, but for those that keep wants.
// Each was used when it was last changed or touched.
func List(ctx context.Context, dir string, keep func(name string, used time.Time) bool) (all []Unused, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && keep(e.Name(), info.ModTime()) {
			continue
		}
		if err != nil {
			return nil, err
		}
		bytes, err := DiskBytes(ctx, filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, Unused{e.Name(), bytes, info.ModTime()})
	}
	return all, nil
}
