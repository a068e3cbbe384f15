package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"syscall"

	"cupola/runtime/durable"
)

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

// verify reads a blob's file, unless it was found sound just now and is the same, and
// leaves it at its beginning.
func (s *Store) verify(digest string, f *os.File) error {
	return s.sound.Verify(digest, func() (identity, error) { return identityOf(f) }, func() error {
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return fmt.Errorf("blob %s: %w", digest, err)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != digest {
			return fmt.Errorf("blob %s: %w: its content has the SHA-256 %s", digest, durable.ErrDamaged, got)
		}
		_, err := f.Seek(0, io.SeekStart)
		return err
	})
}
