package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"cupola/rootfs"
	"cupola/rootfs/reference"
	"cupola/server/backup"
	"cupola/store"
)

// BackupOptions say what a backup holds beside the database and the blobs.
type BackupOptions struct {
	Reference      bool // stacks and images are named only, to be built or pulled again
	WithoutVolumes bool // the volumes of data services and deployments are named only
	// Hold is for how long at most who writes to a volume waits while it is copied; a minute.
	Hold    time.Duration
	Version string // of this cupola
}

// backupPrefix begins the names of directories in which a backup is gathered,
// and that are gone when it is done, or with the next daemon.
const backupPrefix = "backup-"

// Backup writes a backup of a data directory to w: through its daemon if that
// runs, which goes on meanwhile. progress, which may be nil, is told how many
// bytes there are and how many have been written, before they are compressed.
func Backup(ctx context.Context, c Config, o BackupOptions, w io.Writer, progress func(done, total int64)) error {
	if err := c.normalizeForRoot(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, "db", store.DatabaseFile)); err != nil {
		return fmt.Errorf("there is no cupola to back up: %w", err)
	}
	out, err := backup.Compress(w)
	if err != nil {
		return err
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	if err := backupPlain(ctx, c, o, &meter{w: out, told: progress}); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}

// backupPlain writes the tar.
func backupPlain(ctx context.Context, c Config, o BackupOptions, out *meter) error {
	d := &daemon{Config: c}
	err := d.openDir(ctx)
	if errors.Is(err, errInUse) {
		return newControl(c.DataDir).backup(ctx, o, out)
	}
	defer d.close()
	for _, open := range []func(context.Context) error{d.openStore, d.openRoots, d.openVolumes} {
		if err == nil {
			err = open(ctx)
		}
	}
	if err != nil {
		return err
	}
	return d.backup(ctx, o, func(size int64) io.Writer { out.total = size; return out })
}

// sweepBackups takes away what backups left that were killed.
func (d *daemon) sweepBackups() error {
	stale, err := filepath.Glob(d.path(backupPrefix + "*"))
	for _, dir := range stale {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// meter tells how much was written, not too often.
type meter struct {
	w           io.Writer
	done, total int64
	told        func(done, total int64)
	last        time.Time
}

const meterInterval = 50 * time.Millisecond

func (m *meter) Write(p []byte) (int, error) {
	if m.last.IsZero() {
		m.last = time.Now()
	}
	n, err := m.w.Write(p)
	m.done += int64(n)
	if now := time.Now(); now.Sub(m.last) > meterInterval {
		m.last = now
		m.told(m.done, m.total)
	}
	return n, err
}

// backup gathers a backup and writes it to what begin gives, which is told its size.
func (d *daemon) backup(ctx context.Context, o BackupOptions, begin func(size int64) io.Writer) (err error) {
	dir, err := os.MkdirTemp(d.DataDir, backupPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m := backup.Manifest{Version: o.Version, Created: time.Now().UTC().Truncate(time.Second)}
	if err := d.gather(ctx, dir, o, &m); err != nil {
		return err
	}
	source, err := backup.NewSource(ctx, dir, m)
	if err != nil {
		return err
	}
	return source.WriteTo(ctx, begin(source.Size()))
}

// gather links or copies all that belongs to a backup into dir, so that nobody
// can take it away.
func (d *daemon) gather(ctx context.Context, dir string, o BackupOptions, m *backup.Manifest) error {
	kept, err := d.gatherRows(ctx, dir, o, m)
	if err != nil {
		return err
	}
	defer kept.Release()
	if err := errors.Join(d.gatherKeys(dir), d.gatherVolumes(ctx, dir, o, m)); err != nil {
		return err
	}
	if o.Reference {
		return d.nameStacks(kept, dir, m)
	}
	return d.gatherStacks(ctx, kept, dir)
}

// gatherRows takes the database, and what it names before any of that can go.
func (d *daemon) gatherRows(ctx context.Context, dir string, o BackupOptions, m *backup.Manifest) (*rootfs.Kept, error) {
	d.gcMu.Lock()
	defer d.gcMu.Unlock()
	db := filepath.Join(dir, "db")
	if err := os.Mkdir(db, 0o700); err != nil {
		return nil, err
	}
	if err := d.store.Snapshot(ctx, db); err != nil {
		return nil, fmt.Errorf("copy the database: %w", err)
	}
	contents, err := store.Inspect(ctx, db)
	if err != nil {
		return nil, err
	}
	m.Schema = contents.Schema
	for _, digest := range contents.Blobs {
		if err := d.gatherBlob(dir, digest); err != nil {
			return nil, err
		}
	}
	needed, err := d.imagesOf(ctx, db)
	if err != nil {
		return nil, err
	}
	kept, err := d.roots.Keep(func(digest string) bool { return needed[digest] })
	if err != nil || o.Reference {
		return kept, err
	}
	if err := d.gatherImages(kept, dir); err != nil {
		kept.Release()
		return nil, err
	}
	return kept, nil
}

func (d *daemon) gatherBlob(dir, digest string) error {
	from, err := d.blobs.Path(digest)
	if err != nil {
		return fmt.Errorf("the database names a blob that is lost or damaged: %w", err)
	}
	to := filepath.Join(dir, filepath.FromSlash(backup.BlobName(digest)))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Link(from, to)
}

// imagesOf are the images that the rows of a copy of the database need.
func (d *daemon) imagesOf(ctx context.Context, db string) (map[string]bool, error) {
	s, err := store.Open(store.Config{Dir: db, Log: d.Log})
	if err != nil {
		return nil, err
	}
	needed, err := localStacks{&daemon{Config: d.Config, store: s, roots: d.roots}}.pinned(ctx)
	return needed, errors.Join(err, s.Close())
}

func (d *daemon) gatherImages(kept *rootfs.Kept, dir string) error {
	records, blobs, images := filepath.Join(dir, backup.ImagesDir), filepath.Join(dir, "rootfs", "oci"), filepath.Join(dir, "rootfs", "images")
	for _, name := range []string{records, blobs, images} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			return err
		}
	}
	for _, i := range kept.Images {
		if err := d.roots.Images.Link(i.Digest, records, blobs); err != nil {
			return err
		}
	}
	return d.roots.Images.LinkFallbacks(filepath.Join(images, "fallbacks"))
}

// keyFiles are the files beside the database that make a cupola the same one
// again: its keys, its authorities, the admin's password.
var keyFiles = []string{"ca.pem", "ssh_host_key", "db/ca.key", "db/admin-password", "db/bbs/*.crt", "db/bbs/*.key", "identity/ca.crt", "identity/ca.key"}

func (d *daemon) gatherKeys(dir string) error {
	for _, pattern := range keyFiles {
		found, err := filepath.Glob(d.path(pattern))
		if err != nil {
			return err
		}
		for _, file := range found {
			name, err := filepath.Rel(d.DataDir, file)
			if err != nil {
				return err
			}
			if err := copySmall(file, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func copySmall(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600))
}

// gatherStacks packs the stacks that are not every cupola's own.
func (d *daemon) gatherStacks(ctx context.Context, kept *rootfs.Kept, dir string) error {
	for _, st := range kept.Stacks {
		to := filepath.Join(dir, backup.StacksDir, st.Name)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		text, err := json.Marshal(st)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, "stack.json"), text, 0o600); err != nil {
			return err
		}
		if !st.HasTree {
			continue
		}
		if err := errors.Join(d.gatherLock(st.Name, filepath.Join(to, "lock.json")), d.gatherTree(ctx, st.Name, filepath.Join(to, "fs.tar"))); err != nil {
			return fmt.Errorf("pack the stack %s: %w", st.Name, err)
		}
	}
	return nil
}

func (d *daemon) gatherLock(stack, to string) error {
	lock, err := d.roots.Stacks.Lock(stack)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, lock, 0o600))
}

func (d *daemon) gatherTree(ctx context.Context, stack, to string) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(d.roots.Stacks.SaveTree(ctx, stack, f), f.Close())
}

// nameStacks names what is not packed.
func (d *daemon) nameStacks(kept *rootfs.Kept, dir string, m *backup.Manifest) error {
	for _, i := range kept.Images {
		ref, err := reference.Parse(i.Reference)
		if err != nil {
			return err
		}
		m.Left = append(m.Left, backup.Left{Kind: "image", Name: ref.WithDigest(i.Digest).String()})
	}
	for _, st := range kept.Stacks {
		m.Left = append(m.Left, backup.Left{Kind: "stack", Name: st.Name, Origin: st.Origin})
		if st.HasTree {
			if err := d.gatherLock(st.Name, filepath.Join(dir, backup.LocksDir, st.Name+".json")); err != nil {
				return err
			}
		}
	}
	return nil
}

// What the daemon tells of a backup that it sends: how long it is, and after it
// why it broke off.
const (
	backupSize  = "Cupola-Size"
	backupError = "Cupola-Error"
)

func (d *daemon) serveBackup(w http.ResponseWriter, r *http.Request) {
	var o BackupOptions
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Trailer", backupError)
	begun := false
	err := d.backup(r.Context(), o, func(size int64) io.Writer {
		begun = true
		w.Header().Set(backupSize, strconv.FormatInt(size, 10))
		return w
	})
	switch {
	case err == nil:
	case begun:
		w.Header().Set(backupError, strconv.Quote(err.Error()))
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// backup has the daemon send a backup.
func (c control) backup(ctx context.Context, o BackupOptions, out *meter) error {
	res, err := c.send(ctx, "POST", "/backup", o)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out.total, err = strconv.ParseInt(res.Header.Get(backupSize), 10, 64); err != nil {
		return errors.New("the daemon is of a cupola that makes no backups: restart it")
	}
	n, err := io.Copy(out, res.Body)
	if text, uerr := strconv.Unquote(res.Trailer.Get(backupError)); uerr == nil {
		return errors.New(text)
	}
	if err == nil && n != out.total {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("the daemon ended in the middle of the backup: start it again, then repeat the command (%w)", err)
	}
	return nil
}
