package blob

import (
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/durable"
)

// flip changes a byte of a blob as a bad disk does: the file's times and size
// stay.
func flip(t *testing.T, s *Store, b Blob) {
	t.Helper()
	info, err := os.Stat(s.path(b.Digest))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(s.path(b.Digest), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("X"), b.Size/2)
	if err := errors.Join(err, f.Close(), os.Chtimes(s.path(b.Digest), info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedBlobIsNotRead(t *testing.T) {
	s := open(t)
	b := put(t, s, "some content")
	f, err := s.Open(b.Digest)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil || string(content) != "some content" {
		t.Fatalf("got %q, %v", content, err)
	}
	flip(t, s, b)
	if _, err := s.Open(b.Digest); !errors.Is(err, durable.ErrDamaged) {
		t.Errorf("open: got %v; want ErrDamaged", err)
	}
	if _, err := s.Path(b.Digest); !errors.Is(err, durable.ErrDamaged) {
		t.Errorf("path: got %v; want ErrDamaged", err)
	}
	if again := put(t, s, "some content"); again != b {
		t.Errorf("got %+v; want %+v", again, b)
	}
	if _, err := s.Path(b.Digest); err != nil {
		t.Errorf("after it was put again: %v", err)
	}
}

// A blob that was found sound is trusted for an hour, and read again then.
func TestABlobIsReadAgainAfterAnHour(t *testing.T) {
	s := open(t)
	b := put(t, s, "some content")
	synctest.Test(t, func(t *testing.T) {
		if _, err := s.Path(b.Digest); err != nil {
			t.Fatal(err)
		}
		flip(t, s, b)
		f, err := os.Open(s.path(b.Digest))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		// What a file's times do not tell.
		id, err := identityOf(f)
		if err != nil {
			t.Fatal(err)
		}
		s.sound.Found(b.Digest, id)
		if _, err := s.Path(b.Digest); err != nil {
			t.Errorf("at once: %v; want it trusted", err)
		}
		time.Sleep(durable.TrustTime)
		if _, err := s.Path(b.Digest); !errors.Is(err, durable.ErrDamaged) {
			t.Errorf("after %v: %v; want ErrDamaged", durable.TrustTime, err)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	s, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	kept, err := s.Ensure(b.Context(), make([]byte, 100<<20))
	if err != nil {
		b.Fatal(err)
	}
	for name, before := range map[string]func(){"first": func() { s.sound.Forget(kept.Digest) }, "again": func() {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before()
				if _, err := s.Path(kept.Digest); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
