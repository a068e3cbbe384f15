package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"cupola/server/admin/repository/storage"
)

// Load writes the stream of a backup to w. What it wrote is worth nothing if it fails.
func (r *Repository) Load(ctx context.Context, s Snapshot, identities []age.Identity, w io.Writer) error {
	o, err := r.opener(ctx, s, identities)
	if err != nil {
		return err
	}
	defer o.unpack.Close()
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	for _, c := range s.Chunks {
		content, err := o.open(ctx, c)
		if err != nil {
			return err
		}
		if _, err := out.Write(content); err != nil {
			return err
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != s.SHA256 {
		return fmt.Errorf("backup %s is damaged: its SHA-256 is %s, not %s", s.Name, got, s.SHA256)
	}
	return nil
}

// opener opens the chunks of a backup.
type opener struct {
	*Repository
	Snapshot
	known      map[string]storage.Object
	identities []age.Identity
	unpack     *zstd.Decoder
}

// opener looks for the chunks of a backup. The caller closes its unpack.
func (r *Repository) opener(ctx context.Context, s Snapshot, identities []age.Identity) (*opener, error) {
	known, err := r.stored(ctx)
	if err != nil {
		return nil, err
	}
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(chunkMax))
	if err != nil {
		return nil, err
	}
	return &opener{r, s, known, identities, unpack}, nil
}

func (o *opener) open(ctx context.Context, c Chunk) ([]byte, error) {
	object, ok := o.known[c.ID]
	if !ok {
		return nil, fmt.Errorf("backup %s is damaged: the chunk %s is not there", o.Name, c.ID)
	}
	content, err := o.decrypt(ctx, object)
	if err == nil && int64(len(content)) != c.Size {
		err = fmt.Errorf("backup %s is damaged: the chunk %s has %d bytes instead of %d", o.Name, c.ID, len(content), c.Size)
	}
	return content, err
}

func (o *opener) decrypt(ctx context.Context, object storage.Object) ([]byte, error) {
	sealed, err := o.read(ctx, object)
	if err != nil {
		return nil, err
	}
	plain, err := age.Decrypt(bytes.NewReader(sealed), o.identities...)
	if wrong, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, fmt.Errorf("the key does not open this backup: give the identity of one of its recipients: %w", wrong)
	}
	if err != nil {
		return nil, err
	}
	packed, err := io.ReadAll(plain) // which is less than what is sealed
	if err != nil {
		return nil, err
	}
	return o.unpack.DecodeAll(packed, nil)
}

// read reads an object and compares it with the digest in its name.
func (r *Repository) read(ctx context.Context, o storage.Object) ([]byte, error) {
	sealed, err := r.storage.Get(ctx, o.Name, maxObject)
	if err != nil {
		err = fmt.Errorf("%s: %w", o.Name, err)
		if errors.Is(err, storage.ErrNotFound) {
			err = &DamageError{err}
		}
		return nil, err
	}
	if "."+hexSum(sealed) != path.Ext(o.Name) {
		return nil, damaged("%s is damaged: its content does not have the digest of its name", o.Name)
	}
	return sealed, nil
}

// Verify reads all that is stored, which needs no key, and reports the damaged or
// missing chunks of each snapshot and of each part, as SNAPSHOT/PART. report receives how
// many bytes of snapshots or of one journal were read.
func (r *Repository) Verify(ctx context.Context, report func(done, total int64)) (damaged map[string]error, err error) {
	damaged, err = r.verifyAll(ctx, report)
	if err != nil {
		return nil, err
	}
	names, err := r.Names(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		parts, err := r.Journal(name).verifyAll(ctx, report)
		if err != nil {
			return nil, err
		}
		for part, fault := range parts {
			damaged[path.Join(name, part)] = fault
		}
	}
	return damaged, nil
}

func (r *Repository) verifyAll(ctx context.Context, report func(done, total int64)) (damaged map[string]error, err error) {
	names, err := r.Names(ctx) // first: what is saved meanwhile has chunks that are not listed
	if err != nil {
		return nil, err
	}
	known, err := r.stored(ctx)
	if err != nil {
		return nil, err
	}
	faults, err := r.readAll(ctx, known, report)
	if err != nil {
		return nil, err
	}
	damaged = map[string]error{}
	for _, name := range names {
		s, err := r.Find(ctx, name)
		if errors.Is(err, storage.ErrNotFound) { // it was removed meanwhile
			continue
		}
		if err == nil {
			err = s.verify(known, faults)
		}
		if err != nil {
			damaged[name] = err
		}
	}
	return damaged, nil
}

// readAll reads chunks, and returns the faults of those that are damaged.
func (r *Repository) readAll(ctx context.Context, known map[string]storage.Object, report func(done, total int64)) (faults map[string]error, err error) {
	faults, done, total := map[string]error{}, int64(0), int64(0)
	for _, o := range known {
		total += o.Size
	}
	for id, o := range known {
		_, err := r.read(ctx, o)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			faults[id] = err
		}
		done += o.Size
		report(done, total)
	}
	return faults, nil
}

// verify finds the first chunk that is missing or damaged.
func (s Snapshot) verify(known map[string]storage.Object, faults map[string]error) error {
	for _, c := range s.Chunks {
		if _, ok := known[c.ID]; !ok {
			return fmt.Errorf("the chunk %s is not there", c.ID)
		}
		if err := faults[c.ID]; err != nil {
			return err
		}
	}
	return nil
}
