package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *Store, content string) Blob {
	t.Helper()
	b, err := s.Put(t.Context(), strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPut(t *testing.T) {
	s := open(t)
	sum := sha256.Sum256([]byte("content"))
	b := put(t, s, "content")
	if want := (Blob{hex.EncodeToString(sum[:]), 7}); b != want || put(t, s, "content") != want {
		t.Fatalf("got %+v; want %+v", b, want)
	}
	f, err := s.Open(b.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, digest := range []string{"", "../../../etc/passwd", strings.Repeat("0", 64), strings.ToUpper(b.Digest)} {
		if _, err := s.Open(digest); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: got %v; want that there is none", digest, err)
		}
	}
}

// failing gives some bytes and then an error.
type failing struct{ io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = errors.New("broke off")
	}
	return n, err
}

func TestAPutThatFailsLeavesNothing(t *testing.T) {
	s := open(t)
	if _, err := s.Put(t.Context(), failing{strings.NewReader("half")}); err == nil {
		t.Error("got no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(ctx, strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want it canceled", err)
	}
	if left := files(t, s.dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// What a daemon that was killed was writing goes at the next start; what it had
// kept stays.
func TestOpenSweepsWhatWasNotKept(t *testing.T) {
	s := open(t)
	kept := put(t, s, "kept")
	half, err := s.Temp()
	if err != nil {
		t.Fatal(err)
	}
	defer half.Discard()
	io.WriteString(half, "half")
	if _, err := Open(s.dir); err != nil {
		t.Fatal(err)
	}
	if left := files(t, s.dir); len(left) != 1 || left[0] != kept.Digest {
		t.Errorf("got %v; want %s alone", left, kept.Digest)
	}
}

func TestPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		named, unnamed, again := put(t, s, "named"), put(t, s, "unnamed"), put(t, s, "again")
		temp, err := s.Temp()
		if err != nil {
			t.Fatal(err)
		}
		defer temp.Discard()
		time.Sleep(2 * time.Hour)
		fresh := put(t, s, "fresh")
		put(t, s, "again") // someone is about to name it
		// What the files say of their age is the machine's clock, which may have jumped.
		longAgo := time.Now().Add(-24 * time.Hour)
		for _, b := range []Blob{named, unnamed, again, fresh} {
			if err := os.Chtimes(s.path(b.Digest), longAgo, longAgo); err != nil {
				t.Fatal(err)
			}
		}
		prune(t, s, named, 1)
		has(t, s, named, fresh, again)
		if _, err := s.Path(unnamed.Digest); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v; want the unnamed to be gone", err)
		}
		if _, err := os.Stat(temp.Name()); err != nil {
			t.Error("a file on its way was pruned")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Prune(ctx, nil, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v; want it canceled", err)
		}
	})
}

// A blob that a daemon kept before it was killed may be named by what the next
// one finds.
func TestPruneAfterOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := open(t)
		named, unnamed := put(t, first, "named"), put(t, first, "unnamed")
		time.Sleep(2 * time.Hour)
		s, err := Open(first.dir)
		if err != nil {
			t.Fatal(err)
		}
		prune(t, s, named, 0)
		has(t, s, named, unnamed)
		time.Sleep(2 * time.Hour)
		prune(t, s, named, 1)
		has(t, s, named)
	})
}

// prune prunes what is over an hour old, but for one that is named.
func prune(t *testing.T, s *Store, named Blob, want int) {
	t.Helper()
	n, err := s.Prune(t.Context(), map[string]bool{named.Digest: true}, time.Hour)
	if err != nil || n != want {
		t.Errorf("got %d, %v; want %d", n, err, want)
	}
}

func has(t *testing.T, s *Store, blobs ...Blob) {
	t.Helper()
	for _, b := range blobs {
		if _, err := s.Path(b.Digest); err != nil {
			t.Error(err)
		}
	}
}
