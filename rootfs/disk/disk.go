// Package disk gives each container a directory for its writes that holds no more than it may.
//
// Three methods, the best that works here: a project quota of the file system the data directory lies on; an ext4
// image of the right size, sparse, on a loop device; and, with a warning, a plain directory without a limit.
// A container's directory shows which one it has, so that a restarted daemon needs no record.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Method is a way of holding a container to its size.
type Method string

// The methods, best first.
const (
	Project Method = "project quota"
	Loop    Method = "loop ext4"
	Plain   Method = "plain directory"
)

// maxInodes is the most files any container may have, asked for or not.
const maxInodes = 200_000

// Size is what a container may hold. Zero bytes mean no limit; zero inodes mean MaxInodes.
type Size struct {
	Bytes, Inodes int64
	// Durable says that the directory outlives the container and crashes of the machine: an image gets a journal.
	Durable bool
}

// Disks makes and removes containers' writable directories. Its methods may be called at once for different directories.
type Disks struct {
	dir string // templates
	log *slog.Logger
	mu  sync.Mutex // held while a template is made or dropped

	probing sync.Mutex
	method  Method // "": not known yet, for want of room to try; guarded by probing, like why
	why     string
}

// Data is where in a container's directory its writes go.
const Data = "disk"

// Image is the file in a container's directory behind a loop device.
const Image = "disk.img"

// New probes what works in dir, which holds templates and must lie on the file system of the containers' directories.
func New(dir string, log *slog.Logger) (*Disks, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := &Disks{dir: dir, log: log}
	if err := d.dropProbes(); err != nil {
		return nil, err
	}
	_, _ = d.choose() // Create says it again
	return d, nil
}

// Unlimited is New where no directory needs a limit: no method is tried.
func Unlimited(dir string, log *slog.Logger) (*Disks, error) {
	return &Disks{dir: dir, log: log, method: Plain, why: "no containers have disks here"}, os.MkdirAll(dir, 0o700)
}

// Method tells how sizes are held, and when it is not the best way, why. It is
// Plain while the disk is too full to try.
func (d *Disks) Method() (Method, string) {
	m, err := d.choose()
	d.probing.Lock()
	defer d.probing.Unlock()
	if err != nil {
		return Plain, err.Error()
	}
	return m, d.why
}

// choose finds the best method once. A disk without room proves nothing, so
// that what is found there is not kept: a container without a limit would
// outlive it.
func (d *Disks) choose() (Method, error) {
	d.probing.Lock()
	defer d.probing.Unlock()
	if d.method != "" {
		return d.method, nil
	}
	if err := d.probeLocked(); err != nil {
		return "", fmt.Errorf("the data directory's disk is full: %w", err)
	}
	return d.method, nil
}

// probeLocked tries the methods for real: whether a kernel has quotas compiled in, switched on and enforced is nowhere to
// be read. It fails where there is no room to try.
func (d *Disks) probeLocked() error {
	errProject := d.try(Project)
	if errProject == nil {
		d.method = Project
		return nil
	}
	errLoop := d.try(Loop)
	if errLoop == nil {
		d.method, d.why = Loop, fmt.Sprintf("no project quota: %v", errProject)
		return nil
	}
	if err := errors.Join(errProject, errLoop); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) {
		return err
	}
	d.method, d.why = Plain, fmt.Sprintf("no project quota: %v; no loop device: %v", errProject, errLoop)
	d.log.Warn("disk quotas are not enforced", "err", errors.Join(errProject, errLoop))
	return nil
}

func (d *Disks) try(m Method) error {
	dir, err := os.MkdirTemp(d.dir, probePrefix)
	if err != nil {
		return err
	}
	err = d.make(m, dir, Size{Bytes: probeBytes, Inodes: 64})
	if err == nil && m == Project {
		err = overfill(filepath.Join(dir, Data))
	}
	return errors.Join(err, d.Remove(dir), os.RemoveAll(dir))
}

const (
	probePrefix = ".probe-"
	probeBytes  = 4 << 20
)

// dropProbes removes probes that a killed daemon left.
func (d *Disks) dropProbes() error {
	entries, err := os.ReadDir(d.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), probePrefix) {
			dir := filepath.Join(d.dir, e.Name())
			err = errors.Join(err, d.Remove(dir), os.RemoveAll(dir))
		}
	}
	return err
}

// Create makes dir/disk, limited to s; if it is there it must be empty. On error it leaves nothing mounted or attached.
func (d *Disks) Create(dir string, s Size) error {
	if s.Inodes <= 0 || s.Inodes > maxInodes {
		s.Inodes = maxInodes
	}
	m := Plain
	if s.Bytes > 0 {
		var err error
		if m, err = d.choose(); err != nil {
			return err
		}
	}
	if m == Project && s.Durable {
		// A separate file system can be frozen for a backup.
		err := d.make(Loop, dir, s)
		if err == nil {
			return nil
		}
		d.log.Warn("disk is held by a project quota: while it is in use no backup can be made of it", "dir", dir, "err", err)
		if err := errors.Join(d.Remove(dir), ignoreGone(os.Remove(filepath.Join(dir, Image)))); err != nil {
			return err
		}
	}
	if err := d.make(m, dir, s); err != nil {
		return errors.Join(err, d.Remove(dir))
	}
	return nil
}

// Grow grows a disk to s, if it is smaller. After a kill half way, the next Grow completes it. A disk in use can grow only
// if the daemon has all capabilities of root; otherwise that is an error.
func (d *Disks) Grow(dir string, s Size) error {
	if s.Inodes <= 0 || s.Inodes > maxInodes {
		s.Inodes = maxInodes
	}
	if _, err := os.Lstat(filepath.Join(dir, Image)); err == nil {
		return d.growLoop(dir, s)
	}
	return growProject(filepath.Join(dir, Data), s)
}

// Own reports whether dir is a separate file system, which Freeze can hold.
func (d *Disks) Own(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, Image))
	return err == nil
}

// Freeze brings all that was written to an open disk to its image, and blocks
// writers until Thaw. It outlives this process.
func Freeze(dir string) error { return freeze(filepath.Join(dir, Data)) }

// Thaw ends Freeze. A disk that is not frozen, or not open, stays as it is.
func Thaw(dir string) error {
	data := filepath.Join(dir, Data)
	if mounted, err := isMount(data); err != nil || !mounted {
		return ignoreGone(err)
	}
	return thaw(data)
}

func (d *Disks) make(m Method, dir string, s Size) error {
	if err := os.Mkdir(filepath.Join(dir, Data), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	switch m {
	case Project:
		return limitProject(filepath.Join(dir, Data), s)
	case Loop:
		return d.makeLoop(dir, s)
	}
	return nil
}

// Open makes a created disk usable again, also after a reboot.
func (d *Disks) Open(dir string) error {
	img, data := filepath.Join(dir, Image), filepath.Join(dir, Data)
	if _, err := os.Lstat(img); errors.Is(err, fs.ErrNotExist) {
		_, err := os.Lstat(data)
		return err
	}
	mounted, err := isMount(data)
	if err != nil {
		return err
	}
	if mounted {
		return writable(data)
	}
	return remountLoop(img, data)
}

// Close takes what Open made out of the kernel.
func (d *Disks) Close(dir string) error {
	data := filepath.Join(dir, Data)
	mounted := loopAt(data)
	return errors.Join(unmount(data), detach(filepath.Join(dir, Image), mounted))
}

// Remove removes what Create added to dir beyond plain files, in whatever state it is; deleting dir is the caller's.
func (d *Disks) Remove(dir string) error {
	return errors.Join(d.Close(dir), freeProject(filepath.Join(dir, Data)))
}

// Used tells how many bytes the writes in dir occupy.
func (d *Disks) Used(dir string) (int64, error) {
	data := filepath.Join(dir, Data)
	if _, err := os.Lstat(filepath.Join(dir, Image)); err == nil {
		return usedMount(data)
	}
	if n, ok := usedProject(data); ok {
		return n, nil
	}
	return usedTree(data)
}

// usedTree adds up files, for want of a file system that counts.
func usedTree(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return ignoreGone(err)
		}
		info, err := e.Info()
		if err != nil {
			return ignoreGone(err)
		}
		sum += blocks(info)
		return nil
	})
	return sum, err
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
