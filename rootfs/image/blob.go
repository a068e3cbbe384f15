package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"

	"cupola/rootfs/oci"
	"cupola/rootfs/registry"
)

// origin is where documents and blobs of an image come from.
type origin interface {
	Manifest(ctx context.Context, tagOrDigest string) ([]byte, error)
	// Blob opens a blob from byte from on, or from an earlier one that it returns.
	Blob(ctx context.Context, digest string, from int64) (r io.ReadCloser, start int64, err error)
}

const (
	maxStalls = 5                // attempts in a row that bring nothing
	stallTime = 30 * time.Second // without a byte
)

// partial is a blob that is being fetched. Bytes that an earlier pull fetched are kept, and hashed again.
type partial struct {
	f      *os.File
	want   oci.Descriptor
	sum    hash.Hash
	n      int64
	report func(done int64)
}

func openPartial(name string, d oci.Descriptor, report func(int64)) (*partial, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	p := &partial{f: f, want: d, sum: sha256.New(), report: report}
	if p.n, err = io.Copy(p.sum, io.LimitReader(f, d.Size+1)); err == nil && p.n > d.Size {
		err = p.restart()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

func (p *partial) restart() error {
	p.sum.Reset()
	p.n = 0
	_, err := p.f.Seek(0, io.SeekStart)
	return errors.Join(err, p.f.Truncate(0))
}

// more appends what o has beyond it.
func (p *partial) more(ctx context.Context, o origin) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(stallTime, func() { cancel(fmt.Errorf("no byte came for %v", stallTime)) })
	defer watch.Stop()
	r, start, err := o.Blob(ctx, p.want.Digest, p.n)
	if err != nil {
		return because(ctx, err)
	}
	defer r.Close()
	if start != p.n {
		if err := p.restart(); err != nil {
			return err
		}
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := r.Read(buf)
		watch.Reset(stallTime)
		if p.n+int64(n) > p.want.Size {
			return &damagedError{fmt.Sprintf("blob %s is longer than the %d bytes its manifest says", p.want.Digest, p.want.Size)}
		}
		if _, err := p.f.Write(buf[:n]); err != nil {
			return err
		}
		p.sum.Write(buf[:n])
		p.n += int64(n)
		p.report(p.n)
		if err == io.EOF && p.n < p.want.Size {
			return io.ErrUnexpectedEOF
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return because(ctx, err)
		}
	}
}

func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// check compares a whole partial with its digest.
func (p *partial) check() error {
	if got := "sha256:" + hex.EncodeToString(p.sum.Sum(nil)); got != p.want.Digest {
		return &damagedError{fmt.Sprintf("blob %s has the digest %s", p.want.Digest, got)}
	}
	return nil
}

// damagedError says that content does not have its digest or size.
type damagedError struct{ text string }

func (e *damagedError) Error() string { return e.text }

// blob fetches a blob unless it is there, and opens it. It keeps what it got when it is interrupted, and goes on from
// there the next time.
func (p *pull) blob(ctx context.Context, d oci.Descriptor, report func(int64)) (*os.File, error) {
	_, sum, err := oci.BlobFile(d.Digest)
	if err != nil {
		return nil, err
	}
	if d.Size < 0 || d.Size > maxBlob {
		return nil, fmt.Errorf("blob %s of %d bytes", d.Digest, d.Size)
	}
	defer p.s.locks.Lock("blob " + sum)()
	f, err := os.Open(p.s.store.Path("oci", sum))
	if err == nil {
		report(d.Size)
		return f, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	part, err := openPartial(p.s.store.Path("oci", sum+partSuffix), d, report)
	if err != nil {
		return nil, err
	}
	if err := p.fill(ctx, part); err != nil {
		err = errors.Join(err, part.f.Close())
		if _, ok := errors.AsType[*damagedError](err); ok {
			err = errors.Join(err, os.Remove(part.f.Name()))
		}
		return nil, err
	}
	return part.f, nil
}

const (
	partSuffix = ".part"
	maxBlob    = 1 << 40
)

// fill completes a partial. If it is damaged, bytes from before are fetched again first; then the next origin is asked.
func (p *pull) fill(ctx context.Context, part *partial) error {
	old := part.n > 0
	for first := 0; ; {
		err := p.fetchRest(ctx, part, first)
		if err == nil {
			err = part.check()
		}
		if _, damaged := errors.AsType[*damagedError](err); !damaged {
			return err
		}
		if !old {
			first++
		}
		old = false
		if first == len(p.connects) {
			return err
		}
		if err := part.restart(); err != nil {
			return err
		}
	}
}

// fetchRest asks the origins, beginning with the first, until the blob is complete or no origin sends more.
func (p *pull) fetchRest(ctx context.Context, part *partial, first int) error {
	origins := len(p.connects) - first
	for stalls := 0; part.n < part.want.Size; {
		before := part.n
		from, err := p.origin(ctx, first+stalls%origins)
		if err == nil {
			err = part.more(ctx, from)
		}
		_, damaged := errors.AsType[*damagedError](err)
		if err == nil || damaged || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if stalls++; part.n > before {
			stalls = 0
		}
		if stalls >= patience(err, origins) {
			return err
		}
		if !pause(ctx, time.Duration(stalls)*200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// patience is how many attempts in a row may bring nothing. A request that a registry refuses is not repeated.
func patience(err error, origins int) int {
	if errors.Is(err, registry.ErrDenied) || errors.Is(err, registry.ErrMissing) {
		return origins
	}
	return max(maxStalls, origins)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
