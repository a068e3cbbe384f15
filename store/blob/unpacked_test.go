package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/runtime/durable"
)

// trees has one archive.
type trees struct{ digest, content string }

func (u trees) Kept(digest string) (string, bool) { return "/where/it/is", digest == u.digest }

func (u trees) WriteArchive(_ context.Context, digest string, w io.Writer) error {
	if digest != u.digest {
		return fs.ErrNotExist
	}
	_, err := io.WriteString(w, u.content)
	if u.content == "bad" {
		err = fmt.Errorf("layer: %w", durable.ErrDamaged)
	}
	return err
}

// TestUnpackedBlobs are there, though they have no file.
func TestUnpackedBlobs(t *testing.T) {
	s := open(t)
	file, digest := put(t, s, "a file"), strings.Repeat("a", 64)
	s.Unpacked = trees{digest, "an archive"}
	if !s.Has(digest) || !s.Has(file.Digest) || s.Has(strings.Repeat("b", 64)) {
		t.Error("it does not know what it has")
	}
	if path, err := s.Path(digest); err != nil || path != "/where/it/is" {
		t.Errorf("got %s, %v; want the directory", path, err)
	}
	f, err := s.Open(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != "an archive" {
		t.Errorf("got %q, %v", got, err)
	}
	for d, want := range map[string]string{digest: "an archive", file.Digest: "a file"} {
		name := filepath.Join(t.TempDir(), "link")
		if err := s.Link(d, name); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if left := files(t, s.dir); len(left) != 1 || left[0] != file.Digest {
		t.Errorf("got %v left; want the file alone", left)
	}
}

func TestADamagedUnpackedBlob(t *testing.T) {
	s, digest := open(t), strings.Repeat("a", 64)
	s.Unpacked = trees{digest, "bad"}
	if _, err := s.Open(digest); !errors.Is(err, durable.ErrDamaged) || !strings.Contains(err.Error(), digest) {
		t.Errorf("got %v; want that it is damaged, and its name", err)
	}
	if err := s.Link(digest, filepath.Join(t.TempDir(), "link")); !errors.Is(err, durable.ErrDamaged) {
		t.Errorf("got %v; want that it is damaged", err)
	}
	if left := files(t, s.dir); len(left) > 0 {
		t.Errorf("got %v left", left)
	}
}
