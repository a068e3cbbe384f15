package preload

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func TestADirectoryIsPackedWithoutWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "etc", "passwd"), filepath.Join(dir, "bin")
	err := errors.Join(os.Mkdir(filepath.Join(dir, "etc"), 0o750), os.WriteFile(file, []byte("root"), 0o640), os.Symlink("usr/bin", link),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if !isTree(dir) || isTree(file) {
		t.Error("a directory is a tree, and a file is none")
	}
	var out bytes.Buffer
	if err := packDir(t.Context(), dir, &out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name+" "+h.Linkname)
	}
	if want := []string{"Lrwxrwxrwx bin usr/bin", "drwxr-x--- etc/ ", "-rw-r----- etc/passwd "}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "oci-layout"), nil, 0o600); err != nil || isTree(dir) {
		t.Errorf("an image layout is no tree: %v", err)
	}
}
