package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cupola/rootfs"
	"cupola/rootfs/reference"
	"cupola/rootfs/volume"
	"cupola/runtime/durable"
	"cupola/server/admin/archive"
	"cupola/server/admin/stack"
	"cupola/server/datadir"
	"cupola/store"
	"cupola/store/blob"
)

// Options say what a backup holds besides the database and the blobs. They are
// flags of cupola backup.
type Options struct {
	Stacks         string        `help:"whole includes the files of stacks and images; reference includes only their names, so that restore needs them built or pulled again." enum:"whole,reference" default:"whole"`
	WithoutVolumes bool          `help:"Exclude the data of data services and deployments; after a restore it is lost."`
	Hold           time.Duration `help:"Maximum time that writes to a volume are blocked while it is copied." default:"1m"`
	Version        string        `flag:"-"` // of this cupola

	Members func([]archive.Member) `flag:"-" json:"-"` // is called with the backup's files; nil for not at all
}

// names reports whether stacks and images are only named, to be built or pulled
// again.
func (o Options) names() bool { return o.Stacks == "reference" }

// Maker makes backups of a data directory.
type Maker struct {
	Blobs   *blob.Store
	Volumes *volume.Store
	Stacks  *stack.Library
}

// Write collects a backup and writes it as a tar to what begin returns, which
// is called with its size.
func (b *Maker) Write(ctx context.Context, o Options, begin func(size int64) io.Writer) (err error) {
	dir, err := os.MkdirTemp(b.Stacks.Dir.Path(), datadir.ScratchPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m := archive.Manifest{Version: o.Version, Created: time.Now().UTC().Truncate(time.Second)}
	if err := b.gather(ctx, dir, o, &m); err != nil {
		return err
	}
	source, err := archive.NewSource(ctx, dir, m, nil)
	if err != nil {
		return err
	}
	if o.Members != nil {
		o.Members(source.Members())
	}
	return source.WriteTo(ctx, begin(source.Size()))
}

// gather links or copies all that belongs to a backup into dir, so that
// it cannot be deleted meanwhile.
func (b *Maker) gather(ctx context.Context, dir string, o Options, m *archive.Manifest) error {
	kept, err := b.gatherRows(ctx, dir, o, m)
	if err != nil {
		return err
	}
	defer kept.Release()
	if err := errors.Join(b.gatherKeys(dir), b.gatherVolumes(ctx, dir, o, m)); err != nil {
		return err
	}
	if o.names() {
		return b.nameStacks(kept, dir, m)
	}
	return b.gatherStacks(ctx, kept, dir)
}

// gatherRows takes the database, and what it names before any of that can go.
func (b *Maker) gatherRows(ctx context.Context, dir string, o Options, m *archive.Manifest) (*rootfs.Kept, error) {
	b.Stacks.GC.Lock()
	defer b.Stacks.GC.Unlock()
	db := filepath.Join(dir, "db")
	if err := os.Mkdir(db, 0o700); err != nil {
		return nil, err
	}
	if err := b.Stacks.Store.Snapshot(ctx, db); err != nil {
		return nil, fmt.Errorf("copy the database: %w", err)
	}
	contents, err := store.Inspect(ctx, db)
	if err != nil {
		return nil, err
	}
	m.Schema = contents.Schema
	for _, digest := range contents.Blobs {
		if err := b.gatherBlob(dir, digest); err != nil {
			return nil, err
		}
	}
	needed, err := b.imagesOf(ctx, db)
	if err != nil {
		return nil, err
	}
	kept, err := b.Stacks.Roots.Keep(func(digest string) bool { return needed[digest] })
	if err != nil || o.names() {
		return kept, err
	}
	if err := b.gatherImages(kept, dir, nil); err != nil {
		kept.Release()
		return nil, err
	}
	return kept, nil
}

func (b *Maker) gatherBlob(dir, digest string) error {
	to := filepath.Join(dir, filepath.FromSlash(archive.BlobName(digest)))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := b.Blobs.Link(digest, to)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrDamaged) {
		return fmt.Errorf("the database names a blob that is lost or damaged: %w", err)
	}
	return err
}

// imagesOf are the images that the rows of a copy of the database need.
func (b *Maker) imagesOf(ctx context.Context, db string) (map[string]bool, error) {
	s, err := store.Open(store.Config{Dir: db, Log: b.Stacks.Log})
	if err != nil {
		return nil, err
	}
	of := *b.Stacks
	of.Store = s
	needed, err := of.Pinned(ctx)
	return needed, errors.Join(err, s.Close())
}

// gatherImages links images, but for those whose record is had, if has is not nil.
func (b *Maker) gatherImages(kept *rootfs.Kept, dir string, has func(id string) bool) error {
	records, blobs, images := filepath.Join(dir, archive.ImagesDir), filepath.Join(dir, "rootfs", "oci"), filepath.Join(dir, "rootfs", "images")
	for _, name := range []string{records, blobs, images} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			return err
		}
	}
	for _, i := range kept.Images {
		if has != nil && has(recordID(i.Digest)) {
			continue
		}
		if err := b.Stacks.Roots.Images.Link(i.Digest, records, blobs); err != nil {
			return err
		}
	}
	return b.Stacks.Roots.Images.LinkFallbacks(filepath.Join(images, "fallbacks"))
}

// keyFiles are the files besides the database that make a cupola the same one
// again: its keys, its authorities, the admin's password.
var keyFiles = []string{"ca.pem", "ssh_host_key", "db/ca.key", "db/admin-password", "db/bbs/*.crt", "db/bbs/*.key", "identity/ca.crt", "identity/ca.key"}

func (b *Maker) gatherKeys(dir string) error {
	for _, pattern := range keyFiles {
		found, err := filepath.Glob(b.Stacks.Dir.Path(pattern))
		if err != nil {
			return err
		}
		for _, file := range found {
			name, err := filepath.Rel(b.Stacks.Dir.Path(), file)
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
func (b *Maker) gatherStacks(ctx context.Context, kept *rootfs.Kept, dir string) error {
	for _, st := range kept.Stacks {
		to := filepath.Join(dir, archive.StacksDir, st.Name)
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
		if err := errors.Join(b.gatherLock(st.Name, filepath.Join(to, "lock.json")), b.gatherTree(ctx, st.Name, filepath.Join(to, "fs.tar"))); err != nil {
			return fmt.Errorf("pack the stack %s: %w", st.Name, err)
		}
	}
	return nil
}

func (b *Maker) gatherLock(stack, to string) error {
	lock, err := b.Stacks.Roots.Stacks.Lock(stack)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, lock, 0o600))
}

func (b *Maker) gatherTree(ctx context.Context, stack, to string) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(b.Stacks.Roots.Stacks.SaveTree(ctx, stack, f), f.Close())
}

// nameStacks names what is not packed.
func (b *Maker) nameStacks(kept *rootfs.Kept, dir string, m *archive.Manifest) error {
	for _, i := range kept.Images {
		ref, err := reference.Parse(i.Reference)
		if err != nil {
			return err
		}
		m.Left = append(m.Left, archive.Left{Kind: "image", Name: ref.WithDigest(i.Digest).String()})
	}
	for _, st := range kept.Stacks {
		m.Left = append(m.Left, archive.Left{Kind: "stack", Name: st.Name, Origin: st.Origin})
		if st.HasTree {
			if err := b.gatherLock(st.Name, filepath.Join(dir, archive.LocksDir, st.Name+".json")); err != nil {
				return err
			}
		}
	}
	return nil
}
