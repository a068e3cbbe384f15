package lifecycle

import (
	"archive/zip"
	"bytes"
	"testing"
)

func TestBuildpacksAreDeterministicZips(t *testing.T) {
	first, second := Buildpacks(), Buildpacks()
	if len(first) == 0 {
		t.Fatal("got no system buildpacks")
	}
	for i, b := range first {
		if !bytes.Equal(b.Zip, second[i].Zip) {
			t.Errorf("%s: two zips differ", b.Name)
		}
		r, err := zip.NewReader(bytes.NewReader(b.Zip), int64(len(b.Zip)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := r.Open("bin/detect")
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: bin/detect has mode %v, %v; want 0755", b.Name, info.Mode(), err)
		}
	}
}
