package unpack

import "golang.org/x/sys/unix"

func (t *target) fifo(e entry) error {
	dirfd, base, err := t.parent(e.name)
	if err != nil {
		return err
	}
	if err := t.create(dirfd, base, func() error { return unix.Mknodat(dirfd, base, unix.S_IFIFO|0o600, 0) }); err != nil {
		return t.fault(e.name, err)
	}
	// Opening one for reading does not block, and nothing writes to it.
	fd, err := unix.Openat(dirfd, base, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return t.fault(e.name, err)
	}
	defer closeFD(fd)
	if t.o.Owner != nil {
		uid, gid := t.o.Owner(e.uid, e.gid)
		if err := unix.Fchown(fd, uid, gid); err != nil {
			return t.fault(e.name, err)
		}
	}
	if err := unix.Fchmod(fd, unixMode(e.mode)); err != nil {
		return t.fault(e.name, err)
	}
	return nil
}
