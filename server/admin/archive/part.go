package archive

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cupola/store"
)

// Apply brings the tree of a backup below dir, which Extract wrote, up to date with a part:
// the database's pages and the new files. If it fails, the tree is worth nothing.
func Apply(ctx context.Context, r io.Reader, dir string) (m Manifest, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, err
	}
	defer root.Close()
	begin := func(read Manifest) error {
		if m = read; m.Pages == nil {
			return errors.New("it is a backup, and not a part of what changed since one")
		}
		return nil
	}
	member := func(f Member, content io.Reader) error {
		if f.Name == PagesName {
			return store.ApplyPages(filepath.Join(dir, "db", store.DatabaseFile), *m.Pages, content)
		}
		if err := removeIfThere(filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil {
			return &visitError{err}
		}
		return extract(root, dir, f, content)
	}
	return m, read(ctx, r, visitor{Manifest: begin, Member: member})
}

// VerifyTree checks a tree below dir as Verify does a backup, but for the digests of its
// files, which were compared when these were written. left is what the backup only names.
func VerifyTree(ctx context.Context, dir string, left []Left) (Report, error) {
	v := &verifier{dir: filepath.Join(dir, "db"), members: map[string]bool{}, records: map[string][]byte{}}
	v.manifest.Left = left
	var err error
	if v.manifest.Schema, err = store.SchemaOf(ctx, v.dir); err != nil {
		return Report{}, err
	}
	err = filepath.WalkDir(dir, func(file string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		v.members[name] = true
		if strings.HasPrefix(name, ImagesDir+"/") || filepath.Base(name) == "stack.json" {
			v.records[name], err = os.ReadFile(file)
		}
		return err
	})
	if err != nil {
		return Report{}, err
	}
	return v.check(ctx)
}
