package volume

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"cupola/runtime/users"
)

// shown is where directories of volumes are shown, by containers.
const shown = ".shown"

// Owner is a user of containers, by the numbers that the container knows.
type Owner struct{ UID, GID uint32 }

// Show mounts a directory of a volume at a separate place, which a container can mount
// safely: another container could replace the directory's path by a link that leads
// out of the volume at any time, but not the place. With an owner, a missing directory
// is created with its parents, and belongs to the owner; without one it must exist. n
// counts the places of a container, which only Hide removes. At the place, the volume's
// files belong to the container's users; the zero value are those on disk.
func (s *Store) Show(container string, n int, to users.Range, name, dir string, owner *Owner) (at string, err error) {
	if to == (users.Range{}) {
		to = s.cfg.Users
	}
	if !nameRule().MatchString(container) {
		return "", fmt.Errorf("container %q: use letters, digits, '_' and '-'", container)
	}
	data, err := s.open(name)
	if err != nil {
		return "", err
	}
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("directory %s of volume %s: %w", cmp.Or(dir, "/"), name, err)
	}
	var parts []string
	if clean := path.Clean("/" + dir); clean != "/" {
		parts = strings.Split(clean[1:], "/")
	}
	if owner != nil {
		owner = &Owner{UID: s.cfg.Users.Base + owner.UID, GID: s.cfg.Users.Base + owner.GID}
	}
	f, err := openDirectory(data, parts, s.cfg.Users.Base, owner)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	places := filepath.Join(s.cfg.Dir, shown)
	at = filepath.Join(places, container, strconv.Itoa(n))
	if err := os.MkdirAll(at, 0o700); err != nil {
		return fail(err)
	}
	if err := errors.Join(os.Chmod(places, 0o711), open(filepath.Dir(at), to.Base), open(at, to.Base)); err != nil {
		return fail(err)
	}
	if err := s.bind(f, to, at); err != nil {
		return fail(err)
	}
	return at, nil
}

// maxMatches is how many directories a pattern may match.
const maxMatches = 256

// Match returns the directories of a volume that match a pattern as of path.Match, sorted. Links that lead out of it match nothing.
func (s *Store) Match(name, pattern string) (dirs []string, err error) {
	data, err := s.open(name)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(data)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all, err := fs.Glob(root.FS(), pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %s of volume %s: %w", pattern, name, err)
	}
	for _, at := range all {
		if info, err := root.Lstat(at); err == nil && info.IsDir() {
			dirs = append(dirs, at)
		}
	}
	if len(dirs) > maxMatches {
		return nil, fmt.Errorf("pattern %s of volume %s matches %d directories; at most %d are shown", pattern, name, len(dirs), maxMatches)
	}
	return dirs, nil
}

// Hide removes what Show has shown to a container, in whatever state it is.
func (s *Store) Hide(container string) error {
	if !nameRule().MatchString(container) {
		return nil // Show gave it nothing
	}
	dir := filepath.Join(s.cfg.Dir, shown, container)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		// Nothing but an empty directory is deleted: what is mounted still is not ours.
		err = errors.Join(err, unbind(at), os.Remove(at))
	}
	return errors.Join(err, os.Remove(dir))
}

// hideAll removes what Show has shown to containers.
func (s *Store) hideAll() error {
	entries, err := os.ReadDir(filepath.Join(s.cfg.Dir, shown))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, s.Hide(e.Name()))
	}
	return err
}
