package unpack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// Verify compares an archive's SHA-256 with digest, in hex.
func Verify(ctx context.Context, archive *io.SectionReader, digest string) error {
	got, err := Digest(ctx, archive)
	if err == nil && got != digest {
		err = fmt.Errorf("archive has the digest %s, not %s", got, digest)
	}
	return err
}

// Digest returns an archive's SHA-256 in hex.
func Digest(ctx context.Context, archive *io.SectionReader) (string, error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	r := io.NewSectionReader(archive, 0, archive.Size())
	for {
		n, err := r.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return "", err
		}
	}
}
