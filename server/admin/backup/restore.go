package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cupola/rootfs"
	"cupola/rootfs/disk"
	"cupola/rootfs/registry"
	"cupola/rootfs/stack"
	"cupola/rootfs/volume"
	"cupola/runtime/durable"
	"cupola/server/admin/archive"
	"cupola/server/admin/steps"
	"cupola/server/datadir"
	"cupola/store"
)

// Restore makes the data directory dataDir of a backup, which it verifies first. The
// directory must be empty or not there. Until it is whole it lies beside under
// another name: a restore that is killed leaves no half of it, and the next one
// deletes what it left. parts are the files of what changed since, the oldest first, if any.
func Restore(ctx context.Context, dataDir, file string, parts []string, log *slog.Logger, report steps.Func) (archive.Report, error) {
	if err := checkEmpty(dataDir); err != nil {
		return archive.Report{}, err
	}
	found, err := Verify(ctx, file, report)
	if err != nil {
		return found, err
	}
	r := &restore{to: dataDir, log: log, report: found, progress: func(step string, done, total int64) {
		report(steps.Step{Step: step, Done: done, Total: total})
	}}
	err = r.run(ctx, file, parts)
	return r.report, err
}

// Verify checks a backup's file to its last byte.
func Verify(ctx context.Context, file string, report steps.Func) (found archive.Report, err error) {
	err = readFile(file, func(done, total int64) { report(steps.Step{Step: "verify", Done: done, Total: total}) }, func(r io.Reader) (err error) {
		found, err = archive.Verify(ctx, r, "")
		return err
	})
	return found, err
}

// readFile opens a file for read, and reports how far that is.
func readFile(file string, report func(done, total int64), read func(io.Reader) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	count := &steps.Writer{To: io.Discard, Total: info.Size(), Report: report}
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
		return fmt.Errorf("%s is not empty: a backup is restored into an empty directory; name another with --data-dir", dir)
	}
	return nil
}

// restore is a data directory on its way.
type restore struct {
	to       string // the data directory's path
	log      *slog.Logger
	report   archive.Report
	progress func(step string, done, total int64)
	dir      string // until it is whole
}

func (r *restore) run(ctx context.Context, file string, parts []string) (err error) {
	if err := r.sweep(); err != nil {
		return err
	}
	if err := r.makeDir(parts); err != nil {
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
		_, err := archive.Extract(ctx, in, r.dir)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.apply(ctx, parts); err != nil {
		return err
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	return r.place()
}

func (r *restore) prefix() string { return "." + filepath.Base(r.to) + ".restore-" }

// Sweep removes what killed restores of a data directory left next to it.
func Sweep(dataDir string) error { return (&restore{to: dataDir}).sweep() }

// sweep removes what killed restores left.
func (r *restore) sweep() error {
	entries, err := os.ReadDir(filepath.Dir(r.to))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), r.prefix()) {
			continue
		}
		dir := filepath.Join(filepath.Dir(r.to), e.Name())
		lock, err := lockDir(dir)
		if err != nil {
			continue // it is under way
		}
		if err := errors.Join(volume.Abandon(filepath.Join(dir, datadir.Volumes)), os.RemoveAll(dir), lock.Close()); err != nil {
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
func (r *restore) makeDir(parts []string) (err error) {
	parent := filepath.Dir(r.to)
	need := r.report.Bytes()
	for _, m := range r.report.Members {
		if path.Dir(m.Name) == archive.TreesDir {
			need += m.Size // next to its archive, for a while
		}
	}
	for _, file := range parts {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		need += info.Size() // files in them are packed already
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

// opened is what a restore fills.
type opened struct {
	dir     *datadir.Dir
	store   *store.Store
	roots   *rootfs.Store
	volumes *volume.Store
}

// finish unpacks what a backup holds packed, and makes the rows fit a machine
// on which nothing runs.
func (r *restore) finish(ctx context.Context) (err error) {
	o := &opened{}
	if o.dir, err = datadir.Open(r.dir, r.log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.dir.Close()) }()
	// A directory with mounts in it could be neither renamed nor removed.
	defer func() { err = errors.Join(err, volume.Close(o.dir.Path(datadir.Volumes))) }()
	if o.store, err = o.dir.Store(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.store.Close()) }()
	if o.roots, err = o.dir.Roots(registry.Config{}, o.dir.Egress()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.roots.Close()) }()
	if o.volumes, err = o.dir.Volumes(o.roots); err != nil {
		return err
	}
	if err := o.store.Write(ctx, (*store.Tx).ForgetRunning); err != nil {
		return err
	}
	for _, fill := range []func(context.Context, *opened) error{r.images, r.stacks, r.volumes} {
		if err := fill(ctx, o); err != nil {
			return err
		}
	}
	if _, err := os.Stat(o.dir.Path("ca.pem")); err == nil {
		if err := os.Chmod(o.dir.Path("ca.pem"), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(o.dir.Path(archive.ImagesDir)), os.RemoveAll(o.dir.Path(archive.StacksDir)), os.RemoveAll(o.dir.Path(archive.TreesDir)), os.Remove(o.dir.Path("lock")))
}

func (r *restore) images(ctx context.Context, o *opened) error {
	records, err := filepath.Glob(o.dir.Path(archive.ImagesDir, "*.json"))
	if err != nil {
		return err
	}
	for n, name := range records {
		r.progress("images", int64(n), int64(len(records)))
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := o.roots.Images.Restore(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (r *restore) stacks(ctx context.Context, o *opened) error {
	all, err := filepath.Glob(o.dir.Path(archive.StacksDir, "*", "stack.json"))
	if err != nil {
		return err
	}
	for n, name := range all {
		r.progress("stacks", int64(n), int64(len(all)))
		if err := restoreStack(ctx, o.roots, filepath.Dir(name)); err != nil {
			return fmt.Errorf("stack %s: %w", filepath.Base(filepath.Dir(name)), err)
		}
	}
	return nil
}

// volumes makes the volumes. Each archive goes once it has been unpacked.
func (r *restore) volumes(ctx context.Context, o *opened) error {
	for n, v := range r.report.Volumes {
		r.progress("volumes", int64(n), int64(len(r.report.Volumes)))
		name := o.dir.Path(filepath.FromSlash(archive.TreeName(v.Name)))
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = o.volumes.Restore(ctx, v.Name, volume.Spec{Bytes: v.Bytes, Shared: v.Shared}, f)
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
	if err := os.Rename(r.dir, r.to); err != nil {
		if errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("%s is where a file system is mounted: name a directory below it with --data-dir", r.to)
		}
		return err
	}
	return durable.Sync(filepath.Dir(r.to))
}
