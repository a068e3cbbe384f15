package powercut

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Failing is a file system of which one call fails. Its files lie in the
// directory Files. Its methods are those of calls that may fail; all others are
// left to FUSE.
//
// It also knows what of the files is on the disk. As on Linux, what was written
// before an fsync that failed is not, and a later fsync does not bring it there:
// only what is written again.
type Failing struct {
	fuse.RawFileSystem
	Dir   string // where it is mounted
	Files string

	server *fuse.Server

	mu     sync.Mutex
	calls  int // so far
	nth    int // the call that fails
	errno  syscall.Errno
	failed string            // the call that did
	inodes map[uint64]uint64 // of Files, by FUSE's ID
	onDisk map[uint64][]byte // content, by inode
	dirty  map[uint64][]op   // writes since the last fsync, by inode
}

// NewFailing mounts a file system in the directory top, of which the nth call
// fails with an error; 0 for none.
func NewFailing(top string, nth int, errno syscall.Errno) (*Failing, error) {
	f := &Failing{Dir: filepath.Join(top, "failing"), Files: filepath.Join(top, "files"), nth: nth, errno: errno,
		inodes: map[uint64]uint64{}, onDisk: map[uint64][]byte{}, dirty: map[uint64][]op{}}
	if err := errors.Join(os.Mkdir(f.Dir, 0o700), os.Mkdir(f.Files, 0o700)); err != nil {
		return nil, err
	}
	root, err := fusefs.NewLoopbackRoot(f.Files)
	if err != nil {
		return nil, err
	}
	f.RawFileSystem = fusefs.NewNodeFS(root, &fusefs.Options{})
	f.server, err = fuse.NewServer(f, f.Dir, &fuse.MountOptions{DirectMountStrict: true, FsName: "failing", Name: "failing"})
	if err != nil {
		return nil, fmt.Errorf("mount FUSE: %w", err)
	}
	go f.server.Serve()
	return f, f.server.WaitMount()
}

// Init keeps the server from what FUSE does by itself: it would have the kernel
// pass reads and writes of files on, and none of them would come here.
func (f *Failing) Init(*fuse.Server) {}

// Close unmounts the file system.
func (f *Failing) Close() error { return f.server.Unmount() }

// Calls is how many calls could have failed so far.
func (f *Failing) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Failed names the call that failed; "" before it has.
func (f *Failing) Failed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// fails counts a call, and is the error of the one that fails.
func (f *Failing) fails(call string) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.calls != f.nth {
		return fuse.OK
	}
	f.failed = call
	return fuse.Status(f.errno)
}

// Restart writes to a directory what a machine would find after a power cut: all
// names, and of the files what is on the disk.
func (f *Failing) Restart(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return filepath.WalkDir(f.Files, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, path[len(f.Files):])
		if e.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		stat, _ := info.Sys().(*syscall.Stat_t)
		return os.WriteFile(to, f.onDisk[stat.Ino], 0o600)
	})
}

// Lookup learns an inode.
func (f *Failing) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	s := f.RawFileSystem.Lookup(cancel, h, name, out)
	f.learn(s, out)
	return s
}

func (f *Failing) learn(s fuse.Status, out *fuse.EntryOut) {
	if s == fuse.OK {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.inodes[out.NodeId] = out.Attr.Ino
	}
}

// Create makes and opens a file.
func (f *Failing) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if s := f.fails("create"); s != fuse.OK {
		return s
	}
	s := f.RawFileSystem.Create(cancel, in, name, out)
	f.learn(s, &out.EntryOut)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.onDisk, out.Attr.Ino) // of a file that is gone
	delete(f.dirty, out.Attr.Ino)
	return s
}

// Open opens a file.
func (f *Failing) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if s := f.fails("open"); s != fuse.OK {
		return s
	}
	return f.RawFileSystem.Open(cancel, in, out)
}

// Mkdir makes a directory.
func (f *Failing) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	if s := f.fails("mkdir"); s != fuse.OK {
		return s
	}
	return f.RawFileSystem.Mkdir(cancel, in, name, out)
}

// Rename renames a file.
func (f *Failing) Rename(cancel <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	if s := f.fails("rename"); s != fuse.OK {
		return s
	}
	return f.RawFileSystem.Rename(cancel, in, from, to)
}

// Unlink removes a file.
func (f *Failing) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	if s := f.fails("unlink"); s != fuse.OK {
		return s
	}
	return f.RawFileSystem.Unlink(cancel, h, name)
}

// Read reads from a file.
func (f *Failing) Read(cancel <-chan struct{}, in *fuse.ReadIn, to []byte) (fuse.ReadResult, fuse.Status) {
	if s := f.fails("read"); s != fuse.OK {
		return nil, s
	}
	return f.RawFileSystem.Read(cancel, in, to)
}

// Writev makes FUSE call Write.
func (f *Failing) Writev(<-chan struct{}, *fuse.WriteIn, [][]byte) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

// Write writes to a file.
func (f *Failing) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if s := f.fails("write"); s != fuse.OK {
		return 0, s
	}
	n, s := f.RawFileSystem.Write(cancel, in, data)
	f.mu.Lock()
	defer f.mu.Unlock()
	inode := f.inodes[in.NodeId]
	f.dirty[inode] = append(f.dirty[inode], op{int64(in.Offset), append([]byte{}, data[:n]...)})
	return n, s
}

// SetAttr changes a file's size, or else what cannot fail.
func (f *Failing) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	size, ok := in.GetSize()
	if !ok {
		return f.RawFileSystem.SetAttr(cancel, in, out)
	}
	if s := f.fails("truncate"); s != fuse.OK {
		return s
	}
	s := f.RawFileSystem.SetAttr(cancel, in, out)
	f.mu.Lock()
	defer f.mu.Unlock()
	inode := f.inodes[in.NodeId]
	f.dirty[inode] = append(f.dirty[inode], op{at: int64(size)})
	return s
}

// Fsync brings a file to the disk.
func (f *Failing) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	s := f.fails("fsync")
	if s == fuse.OK {
		s = f.RawFileSystem.Fsync(cancel, in)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	inode := f.inodes[in.NodeId]
	if s == fuse.OK {
		for _, w := range f.dirty[inode] {
			f.onDisk[inode] = w.apply(f.onDisk[inode])
		}
	}
	delete(f.dirty, inode)
	return s
}

// apply does a write, or where it has no data sets the size.
func (w op) apply(content []byte) []byte {
	end := int(w.at) + len(w.data)
	if end > len(content) {
		content = append(content, make([]byte, end-len(content))...)
	}
	if w.data == nil {
		return content[:end]
	}
	copy(content[w.at:], w.data)
	return content
}

// FsyncDir brings a directory to the disk.
func (f *Failing) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if s := f.fails("fsync of a directory"); s != fuse.OK {
		return s
	}
	return f.RawFileSystem.FsyncDir(cancel, in)
}
