package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"cupola/rootfs/reference"
)

// Resolve asks the registry, or its mirrors, which digest an image has now; it moves no layer. A reference with a digest
// is asked for as well: that it is there and auth may have it. An error may be ErrImageDenied or ErrImageMissing.
func (s *Store) Resolve(ctx context.Context, r reference.Reference, auth Auth) (digest string, err error) {
	if digest, err = s.resolve(ctx, place{ref: r, auth: auth}); err != nil {
		return "", fmt.Errorf("resolve %s: %w", r, err)
	}
	return digest, nil
}

func (s *Store) resolve(ctx context.Context, at place) (digest string, err error) {
	r := at.ref
	if r.Scheme != reference.SchemeDocker {
		return "", errors.New("it is in no registry")
	}
	err = s.firstSource(ctx, at, func(from source) error {
		digest, err = from.digest(ctx, r.TagOrDigest())
		if err == nil && r.Digest != "" && digest != r.Digest {
			err = fmt.Errorf("the registry has %s instead", digest)
		}
		return err
	})
	return digest, err
}

// firstSource calls do with one source after the other until one serves. What the last, the registry itself, said is the
// error.
func (s *Store) firstSource(ctx context.Context, at place, do func(source) error) (err error) {
	for _, connect := range s.client.sources(at) {
		var from source
		if from, err = connect(ctx); err == nil {
			err = do(from)
		}
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return err
}

func digestText(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
