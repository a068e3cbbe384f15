package doctor

import (
	"errors"
	"os"
	"syscall"
)

// TempDir makes a directory in base that containers can pass through, and locks
// it until remove deletes it. A directory without a lock is a leak of a killed
// process.
func TempDir(base, prefix string) (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp(base, prefix); err != nil {
		return "", nil, err
	}
	held, err := hold(dir, syscall.LOCK_EX)
	if err == nil {
		err = held.Chmod(0o711)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), held.Close()) }, nil
}

// hold takes a lock on a directory, which the process has until it ends; how is
// one of flock's operations.
func hold(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "flock", Path: dir, Err: err}
	}
	return f, nil
}

// Held reports whether a process holds a directory.
func Held(dir string) bool {
	f, err := hold(dir, syscall.LOCK_SH|syscall.LOCK_NB)
	if err != nil {
		return errors.Is(err, syscall.EWOULDBLOCK)
	}
	f.Close()
	return false
}
