package logs

import (
	"errors"
	"fmt"
	"io"
	"os"

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

// rest copies what lies in the pipe now and does not wait for more.
func (r *reader) rest(w io.Writer, buf []byte) error {
	conn, err := r.file.SyscallConn()
	if err != nil {
		return err
	}
	for {
		n := 0
		var readErr error
		if err := conn.Control(func(fd uintptr) { n, readErr = readRetry(int(fd), buf) }); err != nil {
			return err
		}
		if n <= 0 {
			if readErr == unix.EAGAIN {
				return nil
			}
			return readErr
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
	}
}

func readRetry(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}
