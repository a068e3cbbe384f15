package disk

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"cupola/runtime/thread"
)

// The kernel's names and layouts of <linux/fs.h> and <linux/quota.h> that x/sys does not have.
const (
	fsIocFsgetxattr  = 0x801c581f
	fsIocFssetxattr  = 0x401c5820
	fsXflagProjinher = 0x200
	prjQuota         = 2
	qGetQuota        = 0x800007
	qSetQuota        = 0x800008
	qifLimits        = 1 | 4 // block and inode limits
	quotaBlock       = 1024  // what block limits are counted in
)

type fsxattr struct {
	xflags, extsize, nextents, projid, cowextsize uint32
	_                                             [8]byte
}

type dqblk struct {
	bhard, bsoft, curspace, ihard, isoft, curinodes, btime, itime uint64
	valid                                                         uint32
	_                                                             uint32
}

func quotactl(fd int, cmd uint32, id uint32, q *dqblk) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, uintptr(fd), uintptr(cmd<<8|prjQuota), uintptr(id), uintptr(unsafe.Pointer(q)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func xattrIoctl(fd int, req uintptr, x *fsxattr) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), req, uintptr(unsafe.Pointer(x)))
	if errno != 0 {
		return errno
	}
	return nil
}

// limitProject assigns dir, and all that will be created in it, to a new project that is limited to s.
func limitProject(dir string, s Size) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	fd := int(d.Fd())
	id, err := freeID(fd, dir)
	if err != nil {
		return fmt.Errorf("read quota: %w", err)
	}
	q := dqblk{bhard: uint64(s.Bytes+quotaBlock-1) / quotaBlock, ihard: uint64(s.Inodes), valid: qifLimits}
	q.bsoft, q.isoft = q.bhard, q.ihard
	if err := quotactl(fd, qSetQuota, id, &q); err != nil {
		return fmt.Errorf("set quota: %w", err)
	}
	var x fsxattr
	if err := xattrIoctl(fd, fsIocFsgetxattr, &x); err != nil {
		return fmt.Errorf("read project: %w", err)
	}
	x.projid, x.xflags = id, x.xflags|fsXflagProjinher
	if err := xattrIoctl(fd, fsIocFssetxattr, &x); err != nil {
		return fmt.Errorf("set project: %w", err)
	}
	return nil
}

// freeID finds a project without limits or files. The ids start at 2^30, where no /etc/projid is likely to reach; the
// first one tried follows from the directory's name, so that two calls at once do not meet.
func freeID(fd int, dir string) (uint32, error) {
	h := fnv.New32a()
	h.Write([]byte(dir))
	id := 1<<30 | h.Sum32()>>2
	for range 1000 {
		var q dqblk
		err := quotactl(fd, qGetQuota, id, &q)
		if errors.Is(err, unix.ENOENT) || err == nil && q.bhard == 0 && q.ihard == 0 && q.curinodes == 0 {
			return id, nil
		}
		if err != nil {
			return 0, err
		}
		id = 1<<30 | (id+1)&(1<<30-1)
	}
	return 0, errors.New("no project id is free")
}

// project returns the quota of dir's project, if this package set one.
func project(dir string) (d *os.File, id uint32, q dqblk, ok bool) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, 0, q, false
	}
	var x fsxattr
	if xattrIoctl(int(d.Fd()), fsIocFsgetxattr, &x) != nil || x.projid < 1<<30 || quotactl(int(d.Fd()), qGetQuota, x.projid, &q) != nil {
		d.Close()
		return nil, 0, q, false
	}
	return d, x.projid, q, true
}

// freeProject lifts the limits of dir's project, so that its id can serve again once the files are gone.
func freeProject(dir string) error {
	d, id, _, ok := project(dir)
	if !ok {
		return nil
	}
	defer d.Close()
	if err := quotactl(int(d.Fd()), qSetQuota, id, &dqblk{valid: qifLimits}); err != nil {
		return fmt.Errorf("lift quota: %w", err)
	}
	return nil
}

// growProject raises the limits of dir's project; a directory without one has none.
func growProject(dir string, s Size) error {
	d, id, q, ok := project(dir)
	if !ok {
		return nil
	}
	defer d.Close()
	q.bhard, q.ihard = max(q.bhard, uint64(s.Bytes+quotaBlock-1)/quotaBlock), max(q.ihard, uint64(s.Inodes))
	q.bsoft, q.isoft, q.valid = q.bhard, q.ihard, qifLimits
	if err := quotactl(int(d.Fd()), qSetQuota, id, &q); err != nil {
		return fmt.Errorf("raise quota: %w", err)
	}
	return nil
}

func usedProject(dir string) (int64, bool) {
	d, _, q, ok := project(dir)
	if !ok {
		return 0, false
	}
	d.Close()
	return int64(q.curspace), true
}

// overfill proves that the limit of a probe's directory holds. Quotas do not limit processes with CAP_SYS_RESOURCE, so the
// writing thread sheds it first, and ends with its goroutine. (Overlayfs sheds it itself for what containers write.)
func overfill(dir string) error {
	return thread.Throwaway("rootfs", func() error { return overfillHere(dir) })
}

func overfillHere(dir string) error {
	if err := dropResource(); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		return err
	}
	defer f.Close()
	block := bytes.Repeat([]byte{1}, 64<<10)
	for n := 0; n <= 2*probeBytes; n += len(block) {
		_, err := f.Write(block)
		if errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.ENOSPC) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("limits are set but not enforced")
}

func dropResource() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
	return unix.Capset(&hdr, &data[0])
}
