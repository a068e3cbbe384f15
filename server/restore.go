package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cupola/rootfs"
	"cupola/rootfs/disk"
	"cupola/rootfs/stack"
	"cupola/rootfs/volume"
	"cupola/runtime/durable"
	"cupola/server/backup"
	"cupola/store"
)

// Restore makes a data directory of a backup, which it verifies first. The
// directory must be empty or not there. Until it is whole it lies beside under
// another name: a restore that is killed leaves no half of it, and what it left
// the next one takes away. progress is told how far the step is.
func Restore(ctx context.Context, c Config, file string, progress func(step string, done, total int64)) (backup.Report, error) {
	if err := c.normalizeForRoot(); err != nil {
		return backup.Report{}, err
	}
	if err := checkEmpty(c.DataDir); err != nil {
		return backup.Report{}, err
	}
	report, err := VerifyBackup(ctx, file, func(done, total int64) { progress("verify", done, total) })
	if err != nil {
		return report, err
	}
	r := &restore{Config: c, report: report, progress: progress}
	return report, r.run(ctx, file)
}

// VerifyBackup verifies a backup's file.
func VerifyBackup(ctx context.Context, file string, progress func(done, total int64)) (report backup.Report, err error) {
	err = readFile(file, progress, func(r io.Reader) (err error) {
		report, err = backup.Verify(ctx, r, "")
		return err
	})
	return report, err
}

// readFile has read read a file, and tells how far it is.
func readFile(file string, progress func(done, total int64), read func(io.Reader) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	count := &meter{w: io.Discard, total: info.Size(), told: progress}
	return read(io.TeeReader(f, count))
}

// checkEmpty refuses a directory that holds anything.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: a backup is restored into a directory of its own; name another with --data-dir", dir)
	}
	return nil
}

// restore is a data directory on its way.
type restore struct {
	Config
	report   backup.Report
	progress func(step string, done, total int64)
	dir      string // until it is whole
}

func (r *restore) run(ctx context.Context, file string) (err error) {
	if err := r.sweep(); err != nil {
		return err
	}
	if err := r.makeDir(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(r.dir))
		}
	}()
	lock, err := lockDir(r.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	err = readFile(file, func(done, total int64) { r.progress("restore", done, total) }, func(in io.Reader) error {
		_, err := backup.Extract(ctx, in, r.dir)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	return r.place()
}

func (r *restore) prefix() string { return "." + filepath.Base(r.DataDir) + ".restore-" }

// sweep takes away what restores left that were killed.
func (r *restore) sweep() error {
	entries, err := os.ReadDir(filepath.Dir(r.DataDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), r.prefix()) {
			continue
		}
		dir := filepath.Join(filepath.Dir(r.DataDir), e.Name())
		lock, err := lockDir(dir)
		if err != nil {
			continue // it is under way
		}
		if err := errors.Join(volume.Abandon(filepath.Join(dir, volumesDir)), os.RemoveAll(dir), lock.Close()); err != nil {
			return err
		}
	}
	return nil
}

// lockDir holds a directory, by itself, for as long as the file is open.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// makeDir makes the directory beside, if there is room for all of it.
func (r *restore) makeDir() (err error) {
	parent := filepath.Dir(r.DataDir)
	need := r.report.Bytes()
	for _, m := range r.report.Members {
		if path.Dir(m.Name) == backup.TreesDir {
			need += m.Size // beside its archive, for a while
		}
	}
	if err := disk.CheckRoom(parent, "what the backup holds", need); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp(parent, r.prefix()); err != nil {
		return err
	}
	roots := filepath.Join(r.dir, "rootfs")
	// Containers pass through both; all else is root's alone.
	return errors.Join(os.Mkdir(roots, 0o711), os.Chmod(roots, 0o711), os.Chmod(r.dir, 0o711))
}

// finish unpacks what a backup holds packed, and makes the rows fit a machine
// on which nothing runs.
func (r *restore) finish(ctx context.Context) (err error) {
	c := r.Config
	c.DataDir = r.dir
	d := &daemon{Config: c}
	defer d.close()
	// Nothing may stay mounted in a directory that is to be renamed, or removed.
	defer func() { err = errors.Join(err, volume.Close(d.path(volumesDir))) }()
	for _, step := range []func(context.Context) error{d.openDir, d.openStore, d.openRoots, d.openVolumes,
		func(ctx context.Context) error { return d.store.Write(ctx, (*store.Tx).ForgetRunning) },
		func(ctx context.Context) error { return r.images(ctx, d) },
		func(ctx context.Context) error { return r.stacks(ctx, d) },
		func(ctx context.Context) error { return r.volumes(ctx, d) },
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if _, err := os.Stat(d.path("ca.pem")); err == nil {
		if err := os.Chmod(d.path("ca.pem"), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(d.path(backup.ImagesDir)), os.RemoveAll(d.path(backup.StacksDir)), os.RemoveAll(d.path(backup.TreesDir)), os.Remove(d.path("lock")))
}

func (r *restore) images(ctx context.Context, d *daemon) error {
	records, err := filepath.Glob(d.path(backup.ImagesDir, "*.json"))
	if err != nil {
		return err
	}
	for n, name := range records {
		r.progress("images", int64(n), int64(len(records)))
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := d.roots.Images.Restore(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (r *restore) stacks(ctx context.Context, d *daemon) error {
	all, err := filepath.Glob(d.path(backup.StacksDir, "*", "stack.json"))
	if err != nil {
		return err
	}
	for n, name := range all {
		r.progress("stacks", int64(n), int64(len(all)))
		if err := restoreStack(ctx, d.roots, filepath.Dir(name)); err != nil {
			return fmt.Errorf("stack %s: %w", filepath.Base(filepath.Dir(name)), err)
		}
	}
	return nil
}

// volumes makes the volumes. Each archive goes once it has been unpacked.
func (r *restore) volumes(ctx context.Context, d *daemon) error {
	for n, v := range r.report.Volumes {
		r.progress("volumes", int64(n), int64(len(r.report.Volumes)))
		name := d.path(filepath.FromSlash(backup.TreeName(v.Name)))
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = d.volumes.Restore(ctx, v.Name, volume.Spec{Bytes: v.Bytes, Shared: v.Shared}, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

func restoreStack(ctx context.Context, roots *rootfs.Store, dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "stack.json"))
	if err != nil {
		return err
	}
	var st stack.Saved
	if err := json.Unmarshal(text, &st); err != nil {
		return err
	}
	lock, err := os.ReadFile(filepath.Join(dir, "lock.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return roots.Stacks.Restore(ctx, st, lock, filepath.Join(dir, "fs.tar"))
}

// place gives the directory its name once all of it is on disk.
func (r *restore) place() error {
	dir, err := os.Open(r.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return err
	}
	if err := os.Rename(r.dir, r.DataDir); err != nil {
		if errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("%s is where a file system is mounted: name a directory below it with --data-dir", r.DataDir)
		}
		return err
	}
	return durable.Sync(filepath.Dir(r.DataDir))
}
