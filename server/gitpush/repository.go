package gitpush

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"cupola/runtime/durable"
	"cupola/runtime/gitpack"
	"cupola/store"
)

// maxKept bounds an app's repository, in bytes of packs; maxPacks how many
// packs.
const (
	maxKept  = 1 << 30
	maxPacks = 100
	maxRefs  = 1000
)

const suffix = ".git"

// repository is the directory of an app's repository.
func (f *Face) repository(app string) string { return filepath.Join(f.Dir, app+suffix) }

// kept opens the repository of an app's pushes; nil if there is none.
func (f *Face) kept(app string) (*filesystem.Storage, error) {
	if app == "" {
		return nil, nil
	}
	dir := f.repository(app)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return gitpack.Open(dir)
}

// refs are the branches and tags of an app's repository. One that cannot be read is
// as one that is not there: the next push sends all.
func (f *Face) refs(app string) map[string]plumbing.Hash {
	refs := map[string]plumbing.Hash{}
	s, err := f.kept(app)
	if err != nil || s == nil {
		return refs
	}
	all, err := s.IterReferences()
	if err != nil {
		return refs
	}
	defer all.Close()
	_ = all.ForEach(func(r *plumbing.Reference) error { // fails if a file cannot be read
		if r.Type() == plumbing.HashReference && (r.Name().IsBranch() || r.Name().IsTag()) {
			refs[r.Name().String()] = r.Hash()
		}
		return nil
	})
	return refs
}

// keep moves the packs of a directory into an app's repository, and sets refs there.
// It returns false, and keeps nothing at all, if that is more than is kept of an app.
func (f *Face) keep(app, incoming string, updates []update) (bool, error) {
	packs, size, err := packsIn(incoming)
	if err != nil {
		return false, err
	}
	dir := f.repository(app)
	have, before, err := packsIn(dir)
	if err != nil {
		return false, err
	}
	if size+before > maxKept || len(packs)+len(have) > 2*maxPacks || len(f.refs(app))+len(updates) > maxRefs {
		return false, f.forget(app)
	}
	if err := durable.MkdirAll(packDir(dir), 0o700); err != nil {
		return false, err
	}
	for _, p := range packs { // a pack's index last: then the pack is there
		if err := durable.Rename(p, filepath.Join(packDir(dir), filepath.Base(p))); err != nil {
			return false, err
		}
	}
	s, err := gitpack.Open(dir)
	if err != nil {
		return false, err
	}
	for _, u := range updates {
		if err := setRef(s, u); err != nil {
			return false, err
		}
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
	return true, nil
}

func setRef(s *filesystem.Storage, u update) error {
	if u.deletes() {
		return s.RemoveReference(u.name)
	}
	return s.SetReference(plumbing.NewHashReference(u.name, u.new))
}

// forget deletes the repository of an app's pushes.
func (f *Face) forget(app string) error {
	if app == "" {
		return nil
	}
	return os.RemoveAll(f.repository(app))
}

func packDir(repository string) string { return filepath.Join(repository, "objects", "pack") }

// packsIn lists the files of packs in a repository, packs before their indexes.
func packsIn(repository string) (files []string, size int64, err error) {
	for _, kind := range []string{"pack", "idx"} {
		found, err := filepath.Glob(filepath.Join(packDir(repository), "pack-*."+kind))
		if err != nil {
			return nil, 0, err
		}
		for _, file := range found {
			info, err := os.Stat(file)
			if err != nil {
				return nil, 0, err
			}
			size += info.Size()
		}
		files = append(files, found...)
	}
	return files, size, nil
}

// Run deletes the repositories of apps that are gone, until ctx ends.
func (f *Face) Run(ctx context.Context) error {
	const name = "repositories of apps"
	return store.Derive(store.As(ctx, name), f.Store, store.Derivation[[]string]{Name: name, Read: f.orphans, Wake: f.changed, Log: f.Log,
		Use: store.Always(func(_ context.Context, apps []string) error {
			var errs []error
			for _, app := range apps {
				errs = append(errs, f.forget(app))
			}
			return errors.Join(errs...)
		})})
}

// orphans are the apps that have a repository and are gone.
func (f *Face) orphans(tx *store.Tx) (gone []string, err error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return nil, fmt.Errorf("list repositories: %w", err)
	}
	for _, e := range entries {
		app, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok {
			continue
		}
		if _, err := store.Apps.Get(tx, app); store.IsNotFound(err) {
			gone = append(gone, app)
		} else if err != nil {
			return nil, err
		}
	}
	return gone, nil
}
