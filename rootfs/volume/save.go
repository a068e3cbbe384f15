package volume

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cupola/rootfs/disk"
	"cupola/rootfs/pack"
	"cupola/rootfs/unpack"
	"cupola/runtime/durable"
)

// ErrNone says that there is no such volume.
var ErrNone = errors.New("there is no such volume")

// Save writes a snapshot of a volume as a tar, with the owners that its containers
// see. It freezes the volume meanwhile, for no longer than within: a snapshot that is
// not complete by then is an error, and so is a volume in use that has no separate
// file system, which cannot be frozen.
func (s *Store) Save(ctx context.Context, name string, within time.Duration, w io.Writer) error {
	dir, err := s.opened(name)
	if err != nil {
		return err
	}
	s.saving.Lock() // no volume is removed meanwhile
	defer s.saving.Unlock()
	if _, err := os.Lstat(filepath.Join(dir, whole)); err != nil {
		return ErrNone // it was removed just now
	}
	save := s.saveIdle
	if s.cfg.Disks.Own(dir) {
		save = s.saveHeld
	}
	if err := save(ctx, dir, within, w); err != nil {
		return fmt.Errorf("copy volume %s: %w", name, err)
	}
	return nil
}

// opened opens a volume, and returns where it is; ErrNone if there is none.
func (s *Store) opened(name string) (dir string, err error) {
	if dir, err = s.dir(name); err != nil {
		return "", err
	}
	if _, err = s.open(name); err != nil {
		if _, serr := os.Lstat(filepath.Join(dir, whole)); errors.Is(serr, os.ErrNotExist) {
			return "", ErrNone
		}
	}
	return dir, err
}

// saveHeld saves a volume whose file system is frozen meanwhile.
func (s *Store) saveHeld(ctx context.Context, dir string, within time.Duration, w io.Writer) error {
	letGo, err := s.hold(ctx, dir, within)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it takes longer than %s, and who writes to it would have to wait", within))
	defer cancel()
	err = s.pack(ctx, dir, w)
	if fault := letGo(); err == nil {
		err = fault
	}
	return err
}

// saveIdle saves an unused volume, and keeps it unused meanwhile.
func (s *Store) saveIdle(ctx context.Context, dir string, _ time.Duration, w io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	used, err := s.inUse(dir)
	if err != nil {
		return err
	}
	if used {
		return errors.New("it is in use and cannot be frozen: it has no separate file system, since there was no loop device when it was made. Stop what uses it")
	}
	return s.pack(ctx, dir, w)
}

func (s *Store) pack(ctx context.Context, dir string, w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<20)
	inside := func(id uint32) uint32 {
		if id >= s.cfg.Users.Base {
			return id - s.cfg.Users.Base
		}
		return id
	}
	if err := pack.Tree(ctx, filepath.Join(dir, disk.Data), pack.Options{Owner: inside, Root: true, Holes: true}, out); err != nil {
		return err
	}
	return out.Flush()
}

// Restore makes a volume of what Save wrote.
func (s *Store) Restore(ctx context.Context, name string, v Spec, archive *os.File) error {
	if err := s.Create(name, v); err != nil {
		return err
	}
	at, err := s.open(name)
	if err != nil {
		return err
	}
	root, err := os.Open(at)
	if err != nil {
		return err
	}
	defer root.Close()
	section, err := unpack.Section(archive)
	if err != nil {
		return err
	}
	owner := func(uid, gid int) (int, int) { return uid + int(s.cfg.Users.Base), gid + int(s.cfg.Users.Base) }
	// It may hold what its disk holds, and its holes may be of any size.
	_, err = unpack.Into(ctx, root, section, unpack.Options{Image: true, Verbatim: true, Owner: owner, Limits: unpack.Limits{Entries: -1, Bytes: -1, Ratio: -1}})
	if err != nil {
		return fmt.Errorf("restore volume %s: %w", name, err)
	}
	return nil
}

// ErrInUse says that containers have a volume mounted.
var ErrInUse = errors.New("the volume is in use")

// staged ends the name of a volume that is about to replace another.
const staged = "_staged"

// Replace gives a volume the content that Save wrote, all of it or nothing; that of
// before is deleted. A volume that containers have mounted stays as it is: ErrInUse.
func (s *Store) Replace(ctx context.Context, name string, v Spec, archive *os.File) error {
	next := name + staged
	if err := s.Remove(next); err != nil {
		return err
	}
	err := s.Restore(ctx, next, v, archive)
	if err == nil {
		err = s.swap(name, next)
	}
	if err != nil {
		return errors.Join(err, s.Remove(next))
	}
	return nil
}

// swap gives the volume next the name of another one, which it deletes.
func (s *Store) swap(name, next string) error {
	dir, err := s.dir(name)
	if err != nil {
		return err
	}
	if _, err := s.open(name); err != nil {
		return err
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	used, err := s.inUse(dir)
	switch {
	case err != nil:
		return err
	case used:
		return ErrInUse
	}
	from := filepath.Join(s.cfg.Dir, next)
	if err := syncAll(filepath.Join(from, disk.Data)); err != nil {
		return err
	}
	if err := errors.Join(s.cfg.Disks.Close(from), s.removeLocked(dir)); err != nil {
		return err
	}
	return errors.Join(os.Rename(from, dir), durable.Sync(s.cfg.Dir))
}

// finishReplace deletes what a killed Replace left, unless it had deleted the volume
// already: then the new one was complete, and takes its place.
func (s *Store) finishReplace(next string) error {
	dir := filepath.Join(s.cfg.Dir, strings.TrimSuffix(next, staged))
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, s.Remove(next))
	}
	from := filepath.Join(s.cfg.Dir, next)
	return errors.Join(s.cfg.Disks.Close(from), os.Rename(from, dir), durable.Sync(s.cfg.Dir))
}

// syncAll brings all that was written to a directory's file system to the disk.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// inUse reports whether containers have the open volume in dir mounted.
func (s *Store) inUse(dir string) (bool, error) {
	if s.cfg.Disks.Own(dir) {
		return s.cfg.Disks.InUse(dir)
	}
	return mountedElsewhere(filepath.Join(dir, disk.Data))
}

// Abandon removes what the volumes below dir have in the kernel, quotas too,
// so that dir can be deleted.
func Abandon(dir string) error { return each(dir, (&disk.Disks{}).Remove) }

// Close closes the volumes below dir. They must not be in use.
func Close(dir string) error { return each(dir, (&disk.Disks{}).Close) }

func each(dir string, do func(dir string) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, do(filepath.Join(dir, e.Name())))
	}
	return err
}
