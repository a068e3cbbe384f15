package packed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"

	"cupola/rootfs/disk"
	"cupola/rootfs/registry"
)

// leastPacked is the factor that files shrink by at most, as far as the check for room assumes.
const leastPacked = 4

const (
	partSuffix     = ".part" // of a file that is not whole yet
	reportInterval = 50 * time.Millisecond
)

// packLayer compresses a tar that write writes into a file named by its digest. total, of the bytes that write writes, may be 0.
// It does not begin where there is surely no room.
func (s *Images) packLayer(ctx context.Context, what string, total int64, write func(io.Writer) error, progress func(string, int64, int64)) (l registry.Layer, err error) {
	if err := disk.CheckRoom(s.store.Path(Dir), what+", packed,", total/leastPacked); err != nil {
		return l, err
	}
	f, err := os.CreateTemp(s.store.Path(Dir), "new-*"+partSuffix)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, closePartial(f)) }()
	moved, plain := sha256.New(), sha256.New()
	z := gzip.NewWriter(io.MultiWriter(f, moved))
	if err := write(&packWriter{ctx: ctx, w: io.MultiWriter(z, plain), report: func(done int64) { progress(what, min(done, max(total, 1)), total) }}); err != nil {
		return l, fmt.Errorf("%s: %w", what, err)
	}
	if err := errors.Join(z.Close(), f.Sync()); err != nil {
		return l, err
	}
	info, err := f.Stat()
	if err != nil {
		return l, err
	}
	sum := hex.EncodeToString(moved.Sum(nil))
	l = registry.Layer{Digest: "sha256:" + sum, DiffID: "sha256:" + hex.EncodeToString(plain.Sum(nil)), MediaType: string(types.OCILayer), Bytes: info.Size()}
	return l, os.Rename(f.Name(), s.store.Path(Dir, sum))
}

// closePartial closes a file, and removes it unless it was renamed.
func closePartial(f *os.File) error {
	err := f.Close()
	if rerr := os.Remove(f.Name()); !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

// packWriter reports how much was written, not too often, and ends with its context.
type packWriter struct {
	ctx        context.Context
	w          io.Writer
	done       int64
	reportedAt time.Time
	report     func(done int64)
}

// Write writes on.
func (p *packWriter) Write(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	n, err := p.w.Write(b)
	p.done += int64(n)
	if now := time.Now(); now.Sub(p.reportedAt) >= reportInterval {
		p.reportedAt = now
		p.report(p.done)
	}
	return n, err
}

// removePartial removes what a crash left half packed.
func (s *Images) removePartial() error {
	entries, err := os.ReadDir(s.store.Path(Dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), partSuffix) {
			err = errors.Join(err, os.Remove(s.store.Path(Dir, e.Name())))
		}
	}
	return err
}
