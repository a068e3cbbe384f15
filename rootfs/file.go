package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"cupola/rootfs/unpack"
)

// Owner is whom files in a container belong to, by the container's ids.
type Owner struct{ UID, GID uint32 }

// ErrNotMounted is returned for containers whose root is not mounted in this process's mount namespace.
var ErrNotMounted = errors.New("root is not mounted")

// Extract unpacks a zip or tar (plain, gzip, zstd, xz) into the directory dest of a mounted root, making dest when it is
// missing; all of it belongs to o. Links in the root are followed as the container would, never out of it. An archive
// that is at fault gives an *unpack.EntryError; then a part of it stays.
func (s *Store) Extract(ctx context.Context, id, archive, dest string, o Owner) error {
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
	section, err := unpack.Section(f)
	if err != nil {
		return err
	}
	dir, err := ids.openDirs(root, dest, &o)
	if err != nil {
		return fmt.Errorf("make %s: %w", dest, err)
	}
	defer dir.Close()
	_, err = unpack.Into(ctx, dir, section, unpack.Options{Owner: ids.owner(o.UID, o.GID), Limits: s.cfg.Limits})
	if err != nil {
		return fmt.Errorf("extract into %s: %w", dest, err)
	}
	return nil
}

// WriteFile puts a file into a mounted root in one step, replacing what bears its name (a link itself, not what it points
// to) and making missing directories, which belong to root.
func (s *Store) WriteFile(id, name string, content []byte, mode fs.FileMode, uid, gid uint32) error {
	root, ids, err := s.openWritable(id)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := ids.openDirs(root, path.Dir(path.Clean("/"+name)), &Owner{})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer dir.Close()
	if err := ids.replaceFile(dir, path.Base(name), content, mode, Owner{UID: uid, GID: gid}); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Open opens a regular file of a mounted root for reading. Links on the way are followed within the root; the name itself
// must not be one, nor a FIFO or device, whatever the container does meanwhile.
func (s *Store) Open(id, name string) (*os.File, error) {
	root, err := s.openRoot(id)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := openRegular(root, name)
	if err != nil {
		return nil, fmt.Errorf("open %s in %s: %w", name, id, err)
	}
	return f, nil
}

// openRoot opens the root of a container.
func (s *Store) openRoot(id string) (*os.File, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if !isMount(s.rootPath(id)) {
		return nil, fmt.Errorf("%s: %w", id, ErrNotMounted)
	}
	return os.Open(s.rootPath(id))
}

// openWritable opens the root of a container and tells whose users own what is in it.
func (s *Store) openWritable(id string) (*os.File, IDMap, error) {
	root, err := s.openRoot(id)
	if err != nil {
		return nil, IDMap{}, err
	}
	rec, err := s.record(id)
	if err != nil {
		return nil, IDMap{}, errors.Join(fmt.Errorf("read record of %s: %w", id, err), root.Close())
	}
	return root, s.users(rec), nil
}

// openDirs opens the directory name below root. With an owner, missing ones are made and given to it.
func (m IDMap) openDirs(root *os.File, name string, o *Owner) (*os.File, error) {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		name = "."
	}
	dir, err := openDir(root, name)
	if !errors.Is(err, fs.ErrNotExist) || o == nil || name == "." {
		return dir, err
	}
	up, err := m.openDirs(root, path.Dir(name), o)
	if err != nil {
		return nil, err
	}
	defer up.Close()
	if err := m.makeDir(up, path.Base(name), *o); err != nil {
		return nil, err
	}
	return openDir(root, name)
}
