package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// What is read of a backup may have so many times the bytes that it has on disk,
// once it has more than ratioFloor: as for what users upload.
const (
	maxRatio    = 250
	ratioFloor  = 256 << 20
	maxManifest = 256 << 20
	maxWindow   = 32 << 20
)

// visitor is given the manifest of a backup, and then each of its members.
type visitor struct {
	Manifest func(Manifest) error          // nil for not at all
	Member   func(Member, io.Reader) error // need not read to the end; what it got is only known to be true when read returns nil
	Skip     func(Member) bool             // names members that are not read, and not checked; nil for none
}

// read reads a backup to its end, and returns nil only if every byte of it is
// what it was when it was written.
func read(ctx context.Context, r io.Reader, v visitor) error {
	in := &counter{Reader: &reader{ctx: ctx, Reader: r}}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	return faultOf(ctx, readTar(&bounded{r: z, in: in}, v))
}

// faultOf says whose fault it is that a backup was not read.
func faultOf(ctx context.Context, err error) error {
	own, isOwn := errors.AsType[*visitError](err)
	switch {
	case isOwn:
		return own.error
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, zstd.ErrMagicMismatch):
		return errors.New("this is not a backup of cupola, or data follows it")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the backup is cut off")
	case err != nil:
		return fmt.Errorf("the backup is damaged: %w", err)
	}
	return nil
}

// visitError is the visitor's, and not the backup's fault.
type visitError struct{ error }

// counter counts what is read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// bounded refuses to give far more than it takes in.
type bounded struct {
	r   io.Reader
	in  *counter
	out int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.out += int64(n); b.out > ratioFloor && b.out/maxRatio > b.in.n {
		return 0, fmt.Errorf("it unpacks to more than %d times its size", maxRatio)
	}
	return n, err
}

// readTar reads what Source.WriteTo wrote.
func readTar(r io.Reader, v visitor) error {
	t := tar.NewReader(r)
	m, text, err := readManifest(t)
	if err != nil {
		return err
	}
	if v.Manifest != nil {
		if err := v.Manifest(m); err != nil {
			return &visitError{err}
		}
	}
	for _, member := range m.Members {
		if err := readMember(t, member, v); err != nil {
			return fmt.Errorf("%s: %w", member.Name, err)
		}
	}
	if err := readEnd(t, text); err != nil {
		return err
	}
	return readNothing(t, r)
}

// next finds the member that has to come now.
func next(t *tar.Reader, name string) (*tar.Header, error) {
	h, err := t.Next()
	if err == io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if h.Name != name || h.Typeflag != tar.TypeReg || len(h.PAXRecords) > 0 {
		return nil, fmt.Errorf("it has %q (%c) in the place of %s", h.Name, h.Typeflag, name)
	}
	return h, nil
}

func readManifest(t *tar.Reader) (m Manifest, text []byte, err error) {
	h, err := next(t, manifestName)
	if err != nil {
		return m, nil, err
	}
	if h.Size > maxManifest {
		return m, nil, fmt.Errorf("its manifest has %d bytes", h.Size)
	}
	if text, err = io.ReadAll(t); err != nil {
		return m, nil, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, nil, fmt.Errorf("its manifest does not parse: %v", err)
	}
	return m, text, m.check()
}

func readMember(t *tar.Reader, m Member, v visitor) error {
	h, err := next(t, m.Name)
	if err != nil {
		return err
	}
	if h.Size != m.Size {
		return fmt.Errorf("it has %d bytes; the manifest says %d", h.Size, m.Size)
	}
	if v.Skip != nil && v.Skip(m) {
		return nil
	}
	sum := sha256.New()
	content := io.TeeReader(t, sum)
	if v.Member != nil {
		if err := v.Member(m, content); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.SHA256 {
		return fmt.Errorf("its SHA-256 is %s; the manifest says %s", got, m.SHA256)
	}
	return nil
}

// readEnd compares the manifest with the digest at the end.
func readEnd(t *tar.Reader, manifest []byte) error {
	want := endOf(manifest)
	h, err := next(t, endName)
	if err != nil {
		return err
	}
	if h.Size != int64(len(want)) {
		return fmt.Errorf("its last member has %d bytes", h.Size)
	}
	got, err := io.ReadAll(t)
	if err != nil {
		return err
	}
	if string(got) != want {
		return errors.New("its manifest has another digest than it says at the end")
	}
	return nil
}

// readNothing sees that the end is the end.
func readNothing(t *tar.Reader, r io.Reader) error {
	if h, err := t.Next(); err != io.EOF {
		if err != nil {
			return err
		}
		return fmt.Errorf("it has %q, which its manifest does not name", h.Name)
	}
	n, err := io.Copy(io.Discard, r)
	if err == nil && n > 0 {
		err = fmt.Errorf("there are %d bytes behind it", n)
	}
	return err
}
