package unpack

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"
)

// FuzzInto holds that no archive writes outside of its directory, and that Check refuses nothing that Into takes.
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
