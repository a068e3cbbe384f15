package e2e

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// SmallStack is the layer of a small stack whose os-release has the name.
func SmallStack(t *testing.T, osName string) []byte {
	t.Helper()
	helper, err := os.ReadFile(filepath.Join(Repository(t), "runtime/lifecycle/bin/lifecycle"))
	if err != nil {
		t.Fatal(err)
	}
	return LayerOf(t, TarEntry{tar.Header{Name: "etc/os-release", Mode: 0o644}, []byte("NAME=" + osName + "\n")},
		TarEntry{tar.Header{Name: "bin/tools", Mode: 0o755}, helper},
		TarEntry{tar.Header{Name: "bin/sh", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil},
		TarEntry{tar.Header{Name: "bin/cat", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil},
		TarEntry{tar.Header{Name: "bin/id", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil},
		TarEntry{tar.Header{Name: "bin/sleep", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil})
}

// TarEntry is a file of a layer.
type TarEntry struct {
	tar.Header
	Content []byte
}

// LayerOf is a layer with some files.
func LayerOf(t *testing.T, entries ...TarEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.Size = int64(len(e.Content))
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
