package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

func (u trees) OpenFile(digest, name string) (*os.File, error) {
	return nil, fmt.Errorf("%s of %s: %w", name, digest, fs.ErrNotExist)
}

func (u trees) KeepZip(_ context.Context, zip *os.File, like ...string) (string, int64, error) {
	content, err := os.ReadFile(zip.Name())
	switch {
	case err != nil || string(content) == "cannot be kept":
		return "", 0, err
	case string(content) == "bad disk":
		return "", 0, syscall.EIO
	}
	return u.digest, int64(len(like)), nil
}

// TestCommitUnpacked keeps a zip unpacked, or as a file if that cannot be.
func TestCommitUnpacked(t *testing.T) {
	digest := strings.Repeat("a", 64)
	const kept = 2 // of like, which stands for the size
	for content, want := range map[string]struct {
		size int64
		err  error
		file bool
	}{"a zip": {kept, nil, false}, "cannot be kept": {14, nil, true}, "bad disk": {0, syscall.EIO, false}} {
		s := open(t)
		s.Unpacked = trees{digest, "an archive"}
		f, err := s.Temp()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, content); err != nil {
			t.Fatal(err)
		}
		got, err := f.CommitUnpacked(t.Context(), "one", "two")
		f.Discard()
		if !errors.Is(err, want.err) || got.Size != want.size || (got.Digest == digest) != (want.size == kept) {
			t.Errorf("%s: got %+v, %v; want %+v", content, got, err, want)
		}
		if left := files(t, s.dir); slices.Contains(left, got.Digest) != want.file {
			t.Errorf("%s: got %v left", content, left)
		}
	}
	plain := open(t)
	f, err := plain.Temp()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	if got, err := f.CommitUnpacked(t.Context()); err != nil || !plain.Has(got.Digest) {
		t.Errorf("got %+v, %v; want a file where nothing is kept unpacked", got, err)
	}
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
