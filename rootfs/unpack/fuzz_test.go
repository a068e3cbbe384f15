package unpack

import (
	"archive/tar"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// FuzzInto checks that no archive writes outside its directory, and that check accepts all that Into accepts.
func FuzzInto(f *testing.F) {
	for _, c := range hostile {
		if c.name != "NUL" && c.name != "long name" {
			f.Add(tarOf(f, c.items...), false)
			f.Add(zipOf(f, c.items...), false)
			f.Add(tarOf(f, c.items...), true)
		}
	}
	f.Add(tarOf(f, item{name: "a", link: "..", kind: tar.TypeSymlink}, item{name: "a/.wh.in"}, item{name: "a/.wh..wh..opq"}), true)
	f.Add(gz(f, tarOf(f, item{name: "x", body: "y"})), true)
	limits := Limits{Entries: 200, Bytes: 1 << 20}
	f.Fuzz(func(t *testing.T, archive []byte, image bool) {
		up := t.TempDir()
		dir := filepath.Join(up, "in")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		o := Options{Image: image, Limits: limits}
		_, err := into(t, dir, archive, o)
		if entries, rerr := os.ReadDir(up); rerr != nil || len(entries) != 1 || !entries[0].IsDir() {
			t.Fatalf("got %v, %v beside the directory", entries, rerr)
		}
		if _, cerr := check(t.Context(), section(archive), o); err == nil && cerr != nil {
			t.Errorf("Into took what Check refused: %v", cerr)
		}
		if err := filepath.WalkDir(dir, func(name string, e os.DirEntry, _ error) error {
			if e != nil && e.IsDir() {
				_ = os.Chmod(name, 0o700) // for TempDir's clean-up
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// check reads an archive as Into would, writing nothing: it finds what Into would refuse, but for contradictions that show
// only on disk, such as a link to a file that is not there.
func check(ctx context.Context, archive *io.SectionReader, o Options) (Stats, error) {
	w := newWalk(nowhere{}, o)
	err := w.archive(ctx, archive)
	return w.stats, err
}

// nowhere is the sink of check.
type nowhere struct{}

func (nowhere) dir(entry) error { return nil }
func (nowhere) file(_ entry, r io.Reader, buf []byte) error {
	for {
		if _, err := r.Read(buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}
func (nowhere) symlink(entry, string) error { return nil }
func (nowhere) fifo(entry) error            { return nil }
func (nowhere) link(entry, string) error    { return nil }
func (nowhere) whiteout(string) error       { return nil }
func (nowhere) opaque(string) error         { return nil }
