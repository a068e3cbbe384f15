// Package program carries the built programs that start containers.
package program

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"cupola/runtime/packed"
)

//go:embed all:packed
var programs embed.FS

// The programs, by their names.
const (
	Starter = "starter" // cmd/starter, which runs libcontainer
	Launch  = "launch"  // cmd/launch
)

// errNotBuilt is what Open returns in a binary made by a bare `go build`.
var errNotBuilt = errors.New("built without the program that starts containers: run make build")

// Open copies the program of that name into memory and seals the copy, so that nothing in a
// container can change it through /proc/PID/exe (CVE-2019-5736). Where the
// kernel allows no executable memory (vm.memfd_noexec=2) the copy is a file
// without a name in dir; libcontainer then protects it itself.
func Open(name, dir string) (*os.File, error) {
	f, err := copied(name, sealed)
	if errors.Is(err, unix.EACCES) {
		f, err = copied(name, func(program io.Reader) (*os.File, error) { return nameless(program, dir) })
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNotBuilt
	}
	if err != nil {
		return nil, fmt.Errorf("copy the program that starts containers: %w", err)
	}
	return f, nil
}

func copied(name string, to func(io.Reader) (*os.File, error)) (*os.File, error) {
	p, err := packed.Open(programs, "packed/"+name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	return to(p)
}

func sealed(program io.Reader) (*os.File, error) {
	const flags, name = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING, "cupola-starter"
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 all are executable
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = io.Copy(f, program)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// nameless is opened again for reading: a file that is open for writing is not
// executed.
func nameless(program io.Reader, dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR, 0o500)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := io.Copy(f, program); err != nil {
		return nil, err
	}
	return os.Open("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
}
