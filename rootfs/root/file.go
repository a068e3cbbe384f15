package root

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"cupola/rootfs/overlay"
	"cupola/rootfs/tree"
	"cupola/rootfs/unpack"
	"cupola/runtime/users"
)

// ErrNotMounted is returned for containers whose root is not mounted in this process's mount namespace.
var ErrNotMounted = errors.New("root is not mounted")

// Extract unpacks a zip or tar (plain, gzip, zstd, xz), or copies a kept layer, into the directory dest of a mounted root, making
// dest when it is missing; all of it belongs to o. Links in the root are followed as the container would, never out of it. An
// archive that is at fault gives an *unpack.EntryError; then a part of it stays.
func (s *Roots) Extract(ctx context.Context, id, archive, dest string, o tree.Owner) error {
	return s.extract(ctx, id, archive, dest, o, unpack.Options{})
}

// ExtractLayer is Extract for a layer of an image, with the rules of images: names may begin with "/", and whiteouts remove.
func (s *Roots) ExtractLayer(ctx context.Context, id, archive, dest string, o tree.Owner) error {
	return s.extract(ctx, id, archive, dest, o, unpack.Options{Image: true})
}

func (s *Roots) extract(ctx context.Context, id, archive, dest string, o tree.Owner, options unpack.Options) error {
	root, ids, err := s.openWritable(id)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	dir, err := tree.OpenDirs(root, dest, &o, ids)
	if err != nil {
		return fmt.Errorf("make %s: %w", dest, err)
	}
	defer dir.Close()
	options.Owner, options.Limits = tree.OwnedBy(ids, o), s.store.Limits
	if err := s.unpackInto(ctx, dir, f, options); err != nil {
		return fmt.Errorf("extract into %s: %w", dest, err)
	}
	return nil
}

func (s *Roots) unpackInto(ctx context.Context, dir, archive *os.File, o unpack.Options) error {
	info, err := archive.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return s.layers.Copy(ctx, archive.Name(), dir, o)
	}
	_, err = unpack.Into(ctx, dir, io.NewSectionReader(archive, 0, info.Size()), o)
	return err
}

// WriteFile puts a file into a mounted root in one step, replacing what has its name (a link itself, not what it points
// to) and making missing directories, which belong to root.
func (s *Roots) WriteFile(id, name string, content []byte, mode fs.FileMode, uid, gid uint32) error {
	root, ids, err := s.openWritable(id)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := tree.OpenDirs(root, path.Dir(path.Clean("/"+name)), &tree.Owner{}, ids)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer dir.Close()
	if err := tree.ReplaceFile(dir, path.Base(name), content, mode, tree.Owner{UID: uid, GID: gid}, ids); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Open opens a regular file of a mounted root for reading. Links on the way are followed within the root; the name itself
// must not be one, nor a FIFO or device, whatever the container does meanwhile.
func (s *Roots) Open(id, name string) (*os.File, error) {
	root, err := s.openRoot(id)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := tree.OpenRegular(root, name)
	if err != nil {
		return nil, fmt.Errorf("open %s in %s: %w", name, id, err)
	}
	return f, nil
}

// openRoot opens the root of a container.
func (s *Roots) openRoot(id string) (*os.File, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if !overlay.IsMount(s.rootPath(id)) {
		return nil, fmt.Errorf("%s: %w", id, ErrNotMounted)
	}
	return os.Open(s.rootPath(id))
}

// openWritable opens the root of a container and tells whose users own what is in it.
func (s *Roots) openWritable(id string) (*os.File, users.Range, error) {
	root, err := s.openRoot(id)
	if err != nil {
		return nil, users.Range{}, err
	}
	rec, err := s.record(id)
	if err != nil {
		return nil, users.Range{}, errors.Join(fmt.Errorf("read record of %s: %w", id, err), root.Close())
	}
	return root, s.users(rec), nil
}
