package main

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// smallStack is the layer of a small stack whose os-release has the name.
func smallStack(t *testing.T, osName string) []byte {
	t.Helper()
	helper, err := os.ReadFile(filepath.FromSlash("../../runtime/lifecycle/bin/lifecycle"))
	if err != nil {
		t.Fatal(err)
	}
	return layerOf(t, tarEntry{tar.Header{Name: "etc/os-release", Mode: 0o644}, []byte("NAME=" + osName + "\n")},
		tarEntry{tar.Header{Name: "bin/tools", Mode: 0o755}, helper},
		tarEntry{tar.Header{Name: "bin/sh", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil},
		tarEntry{tar.Header{Name: "bin/cat", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil},
		tarEntry{tar.Header{Name: "bin/id", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil},
		tarEntry{tar.Header{Name: "bin/sleep", Typeflag: tar.TypeLink, Linkname: "bin/tools"}, nil})
}

type tarEntry struct {
	tar.Header
	content []byte
}

func layerOf(t *testing.T, entries ...tarEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.Size = int64(len(e.content))
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
