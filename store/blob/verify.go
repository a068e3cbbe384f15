package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"cupola/runtime/durable"
)

// trustTime is for how long a blob that was read and found sound is not read
// again, as long as its file stays the same. A disk that loses bits changes no
// time of a file, so nothing is trusted for good; and hashing 100 MB takes a
// tenth of a second or more, so no start of an instance waits for it twice.
const trustTime = time.Hour

// sound is what is known of blobs that were read.
type sound struct {
	mu  sync.Mutex
	all map[string]*proof // by digest
}

// proof is that a file had the right content. Who holds mu reads the file.
type proof struct {
	mu   sync.Mutex
	file identity
	at   time.Time // zero: never
}

// identity tells a file from what it was before a change.
type identity struct {
	dev, inode   uint64
	size         int64
	mtime, ctime syscall.Timespec
}

func identityOf(f *os.File) (identity, error) {
	info, err := f.Stat()
	if err != nil {
		return identity{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, fmt.Errorf("stat %s: no inode", f.Name())
	}
	return identity{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim}, nil
}

func (s *sound) of(digest string) *proof {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*proof{}
	}
	p := s.all[digest]
	if p == nil {
		p = &proof{}
		s.all[digest] = p
	}
	return p
}

func (s *sound) forget(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, digest)
}

// verify reads a blob's file, unless it was found sound just now, and leaves it
// at its beginning.
func (s *Store) verify(digest string, f *os.File) error {
	p := s.sound.of(digest)
	p.mu.Lock()
	defer p.mu.Unlock()
	id, err := identityOf(f)
	if err != nil {
		return err
	}
	if since := time.Since(p.at); !p.at.IsZero() && p.file == id && since < trustTime {
		return nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("blob %s: %w", digest, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != digest {
		return fmt.Errorf("blob %s: %w: its content has the SHA-256 %s", digest, durable.ErrDamaged, got)
	}
	p.file, p.at = id, time.Now()
	_, err = f.Seek(0, io.SeekStart)
	return err
}
