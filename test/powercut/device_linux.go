package powercut

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// device is the file that the loop device is on. It has no fallocate, so that
// the kernel discards nothing and writes zeros itself.
type device struct {
	fs.Inode
	disk *Disk
}

var (
	_ fs.NodeGetattrer = (*device)(nil)
	_ fs.NodeSetattrer = (*device)(nil)
	_ fs.NodeOpener    = (*device)(nil)
	_ fs.NodeReader    = (*device)(nil)
	_ fs.NodeWriter    = (*device)(nil)
	_ fs.NodeFsyncer   = (*device)(nil)
)

// Getattr tells the size.
func (f *device) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size, out.Nlink = syscall.S_IFREG|0o600, uint64(len(f.disk.content)), 1
	return 0
}

// Setattr changes nothing: mkfs sets a size, which is the device's.
func (f *device) Setattr(ctx context.Context, h fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return f.Getattr(ctx, h, out)
}

// Open lets the kernel cache nothing: each write comes here before it is done.
func (f *device) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

// Read reads the content.
func (f *device) Read(_ context.Context, _ fs.FileHandle, to []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if at > int64(len(f.disk.content)) {
		return nil, syscall.EINVAL
	}
	return fuse.ReadResultData(to[:copy(to, f.disk.content[at:])]), 0
}

// Write records a write.
func (f *device) Write(_ context.Context, _ fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if at+int64(len(data)) > int64(len(f.disk.content)) {
		return 0, syscall.ENOSPC
	}
	n := copy(f.disk.content[at:], data)
	f.disk.record = append(f.disk.record, op{at, append([]byte{}, data...)})
	return uint32(n), 0
}

// Fsync records a flush of all that was written before.
func (f *device) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.record = append(f.disk.record, op{})
	return 0
}
