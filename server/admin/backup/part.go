package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cupola/rootfs"
	"cupola/rootfs/reference"
	"cupola/server/admin/archive"
	"cupola/server/datadir"
	"cupola/store"
)

// PartOptions say what a part holds.
type PartOptions struct {
	Version string
	Also    map[uint32]bool      // pages of the database, besides those that changed
	Whole   bool                 // all pages
	Has     func(id string) bool // reports whether a file is where the part goes, by its archive.Member's ID
}

// Part is what changed since a backup or an earlier part: pages of the database, and the
// files that its rows name since. Stacks and volumes are in backups alone.
type Part struct {
	store.Taken
	IDs    []string // of the files
	dir    string
	source *archive.Source
}

// GatherPart collects a part. Its Count is 0 if nothing changed. Close it.
func (b *Maker) GatherPart(ctx context.Context, pages *store.Pages, o PartOptions) (p *Part, err error) {
	p = &Part{}
	if p.dir, err = os.MkdirTemp(b.Stacks.Dir.Path(), datadir.ScratchPrefix); err != nil {
		return nil, err
	}
	if err := b.gatherPart(ctx, pages, o, p); err != nil {
		return p, errors.Join(err, p.Close()) // with what it took
	}
	return p, nil
}

func (b *Maker) gatherPart(ctx context.Context, pages *store.Pages, o PartOptions, p *Part) error {
	kept, err := b.gatherChanges(ctx, pages, o, p)
	if err != nil || kept == nil {
		return err
	}
	defer kept.Release()
	if err := b.gatherKeys(p.dir); err != nil {
		return err
	}
	m := archive.Manifest{Version: o.Version, Schema: p.Schema, Created: p.At, Pages: &p.PageSet}
	if p.source, err = archive.NewSource(ctx, p.dir, m, o.Has); err != nil {
		return err
	}
	for _, member := range p.source.Members() {
		if member.Name != archive.PagesName {
			p.IDs = append(p.IDs, member.ID())
		}
	}
	return nil
}

// gatherChanges takes the pages, and the files that they name before any of those can go.
// kept is nil if nothing changed.
func (b *Maker) gatherChanges(ctx context.Context, pages *store.Pages, o PartOptions, p *Part) (*rootfs.Kept, error) {
	b.Stacks.GC.Lock()
	defer b.Stacks.GC.Unlock()
	if err := os.Mkdir(filepath.Join(p.dir, "db"), 0o700); err != nil {
		return nil, err
	}
	var err error
	if p.Taken, err = pages.Take(ctx, filepath.Join(p.dir, filepath.FromSlash(archive.PagesName)), o.Also, o.Whole); err != nil || p.Count == 0 {
		return nil, err
	}
	for _, digest := range p.Blobs {
		if o.Has(archive.BlobName(digest)) {
			continue
		}
		if err := b.gatherBlob(p.dir, digest); err != nil {
			return nil, err
		}
	}
	needed, err := b.Stacks.Pinned(ctx)
	if err != nil {
		return nil, err
	}
	for _, image := range p.Images { // also those of droplets that were deleted just now: the pages have them
		r, err := reference.Parse(image)
		if err != nil {
			return nil, err
		}
		needed[r.Digest] = true
	}
	kept, err := b.Stacks.Roots.Keep(func(digest string) bool { return needed[digest] })
	if err != nil {
		return nil, err
	}
	if err := b.gatherImages(kept, p.dir, o.Has); err != nil {
		kept.Release()
		return nil, err
	}
	return kept, nil
}

// WriteTo writes the part's tar.
func (p *Part) WriteTo(ctx context.Context, w io.Writer) error { return p.source.WriteTo(ctx, w) }

// Close removes the part's files here.
func (p *Part) Close() error { return os.RemoveAll(p.dir) }

// apply brings what was extracted up to date with parts, and checks it again.
func (r *restore) apply(ctx context.Context, parts []string) error {
	if len(parts) == 0 {
		return nil
	}
	for n, file := range parts {
		r.progress("changes", int64(n), int64(len(parts)))
		err := readFile(file, func(int64, int64) {}, func(in io.Reader) error {
			m, err := archive.Apply(ctx, in, r.dir)
			r.report.Created = m.Created
			return err
		})
		if err != nil {
			return fmt.Errorf("what changed since the backup: %w", err)
		}
	}
	found, err := archive.VerifyTree(ctx, r.dir, r.report.Left)
	if err != nil {
		return fmt.Errorf("the backup with what changed since: %w", err)
	}
	r.report.Contents = found.Contents
	return r.updateVolumes(ctx)
}

// updateVolumes leaves out the volumes of service instances that were deleted since the backup, makes
// others as large as they have become, and names those of instances that were created.
func (r *restore) updateVolumes(ctx context.Context) error {
	all, err := volumesOf(ctx, filepath.Join(r.dir, "db"))
	if err != nil {
		return err
	}
	there := map[string]bool{}
	var kept []archive.Volume
	for _, v := range r.report.Volumes {
		if now, ok := all[v.Name]; ok {
			v.Bytes = max(v.Bytes, now.Bytes)
			there[v.Name], kept = true, append(kept, v)
		}
	}
	r.report.Volumes = kept
	for _, l := range r.report.Left {
		there[l.Name] = true
	}
	for name, v := range all {
		if v.must && !there[name] {
			r.report.Left = append(r.report.Left, archive.Left{Kind: "volume", Name: name, Origin: v.of + ", created since the backup"})
		}
	}
	return nil
}

// recordID is the ID of an image's record.
func recordID(digest string) string {
	return archive.ImagesDir + "/" + strings.TrimPrefix(digest, "sha256:") + ".json"
}
