package logs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// pipeBytes is the size asked of the kernel for a FIFO: what an app can write
// while no daemon runs, before it has to wait. Memory is used as it fills.
const pipeBytes = 1 << 20

// MakeFIFO makes the FIFO at path, or takes the one that is there. Everybody
// may write: an app that opens /dev/stdout again does so as its own user. The
// directory must keep others out.
func MakeFIFO(path string) error {
	if err := unix.Mkfifo(path, 0o622); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make fifo %s: %w", path, err)
	}
	if err := unix.Chmod(path, 0o622); err != nil { // against the umask
		return fmt.Errorf("make fifo %s: %w", path, err)
	}
	return nil
}

// OpenWriter opens the FIFO at path O_RDWR, to be the stdout or stderr of a
// container: it never waits for a reader and survives the loss of one. The
// file is in blocking mode, as programs expect. The caller closes it.
func OpenWriter(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open fifo %s: %w", path, err)
	}
	// Best effort: a smaller pipe works too, it only fills sooner.
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeBytes)
	return os.NewFile(uintptr(fd), path), nil
}

// reader is the daemon's end of a FIFO.
type reader struct {
	file   *os.File
	keeper *os.File // a writer, so that no end of file comes before drain
}

func openReader(path string) (*reader, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	keeper, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &reader{file: file, keeper: keeper}, nil
}

func (r *reader) close() {
	r.keeper.Close()
	r.file.Close()
}

// readBytes is what one read takes at most.
const readBytes = 8 << 10

// buffers are what is read into. A pipe has one only while it is read: every container has
// two pipes, and most are silent.
var buffers = sync.Pool{New: func() any { return new([readBytes]byte) }}

// copyTo copies what comes, until the end or the read deadline.
func (r *reader) copyTo(w io.Writer) error {
	conn, err := r.file.SyscallConn()
	if err != nil {
		return err
	}
	return copyAll(w, conn.Read)
}

// rest copies what lies in the pipe now and does not wait for more.
func (r *reader) rest(w io.Writer) error {
	conn, err := r.file.SyscallConn()
	if err != nil {
		return err
	}
	err = copyAll(w, func(read func(fd uintptr) bool) error {
		return conn.Control(func(fd uintptr) { read(fd) })
	})
	if err == unix.EAGAIN {
		return nil
	}
	return err
}

// copyAll copies until the end. with calls a read, which says by false that there is nothing
// yet: with may wait then and call it again.
func copyAll(w io.Writer, with func(read func(fd uintptr) bool) error) error {
	for {
		var n int
		var failed error
		err := with(func(fd uintptr) bool {
			n, failed = copyOnce(int(fd), w)
			return failed != unix.EAGAIN
		})
		if err != nil {
			return err
		}
		if failed != nil || n == 0 {
			return failed
		}
	}
}

// copyOnce copies what one read takes; none is the end.
func copyOnce(fd int, w io.Writer) (int, error) {
	buf := buffers.Get().(*[readBytes]byte)
	defer buffers.Put(buf)
	n, err := readRetry(fd, buf[:])
	if err != nil {
		return 0, err
	}
	return w.Write(buf[:n])
}

func readRetry(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}
