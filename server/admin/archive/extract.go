package archive

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
)

// Extract writes the members of a backup below dir, which is there, under their
// names. What it wrote is worth nothing if it fails.
func Extract(ctx context.Context, r io.Reader, dir string) (Manifest, error) {
	return ExtractSome(ctx, r, dir, func(Member) bool { return true })
}

// ExtractSome is Extract of the members that are wanted. It reads and checks the others, too.
func ExtractSome(ctx context.Context, r io.Reader, dir string, wants func(Member) bool) (Manifest, error) {
	return extractTo(dir, wants, func(v visitor) error { return read(ctx, r, v) })
}

// ExtractSomeOfTar is ExtractSome of what a Source wrote. It reads, and checks, only the members that are wanted.
func ExtractSomeOfTar(ctx context.Context, r io.ReadSeeker, dir string, wants func(Member) bool) (Manifest, error) {
	return extractTo(dir, wants, func(v visitor) error {
		v.Skip = func(m Member) bool { return !wants(m) }
		return faultOf(ctx, readTar(r, v))
	})
}

func extractTo(dir string, wants func(Member) bool, read func(visitor) error) (m Manifest, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, err
	}
	defer root.Close()
	v := visitor{Manifest: func(read Manifest) error { m = read; return nil }}
	v.Member = func(f Member, content io.Reader) error {
		if !wants(f) {
			return nil
		}
		return extract(root, dir, f, content)
	}
	return m, read(v)
}

func extract(root *os.Root, dir string, f Member, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(f.Name), 0o700); err != nil {
		return &visitError{err}
	}
	return writeFile(filepath.Join(dir, filepath.FromSlash(f.Name)), content)
}
