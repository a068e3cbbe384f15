package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"cupola/server/admin/repository/storage"
)

// SaveOptions say how a backup is made.
type SaveOptions struct {
	Version    string          // of this cupola
	Recipients []age.Recipient // who can read it
	Rate       int64           // bytes a second that are sent at most; 0: no limit
	After      string          // of a part of a journal: the one that it follows
	At         time.Time       // of a part: what it has is as of then; the zero time: as of now
	// Commit is called when all but the snapshot's own object is stored, and may complete
	// that; nil for not at all.
	Commit func(*Snapshot) error
}

// Saved is a backup that was made.
type Saved struct {
	Snapshot
	Added int64 // bytes that were sent
}

// Save makes a backup of what write writes.
func (r *Repository) Save(ctx context.Context, o SaveOptions, write func(io.Writer) error) (Saved, error) {
	known, err := r.stored(ctx)
	if err != nil {
		return Saved{}, err
	}
	names, err := r.Names(ctx)
	if err != nil {
		return Saved{}, err
	}
	if err := r.dropHalves(ctx); err != nil {
		return Saved{}, err
	}
	host, _ := os.Hostname()
	began := time.Now().UTC().Truncate(time.Second)
	if !o.At.IsZero() { // not earlier: nothing that came later is in it
		began = o.At.UTC().Add(time.Second - 1).Truncate(time.Second)
	}
	if last := newest(names); r.journal && began.Before(last) { // the clock was ahead
		began = last
	}
	for slices.Contains(names, began.Format(stamp)) { // by another daemon, or just now
		began = began.Add(time.Second)
	}
	s := &saver{Repository: r, ctx: ctx, options: o, known: known, sum: sha256.New(), began: time.Now(), idKey: r.key}
	s.made.Snapshot = Snapshot{Name: began.Format(stamp), Created: began, Version: o.Version, Host: host, After: o.After, Readers: r.readersID(o.Recipients)}
	if s.made.Apart = r.isApart(ctx, names, s.made.Readers); s.made.Apart {
		s.idKey = digest(r.key, []byte("chunks for "+s.made.Readers))
	}
	if s.pack, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
		return Saved{}, err
	}
	cut := &cutter{each: s.chunk}
	if err := write(cut); err != nil {
		return Saved{}, err
	}
	if err := cut.Close(); err != nil {
		return Saved{}, err
	}
	s.made.SHA256 = hex.EncodeToString(s.sum.Sum(nil))
	err = s.commit()
	return s.made, err
}

// newest is when the last of names was begun.
func newest(names []string) (made time.Time) {
	if len(names) > 0 {
		made, _ = time.Parse(stamp, names[len(names)-1]) // Names gives no other
	}
	return made
}

// commit writes the snapshot itself, which makes a backup of what was stored.
func (s *saver) commit() error {
	if s.options.Commit != nil {
		if err := s.options.Commit(&s.made.Snapshot); err != nil {
			return err
		}
	}
	text, err := json.Marshal(s.made.Snapshot)
	if err == nil {
		err = s.put(path.Join(snapshots, s.made.Name+snapSuffix), text)
	}
	if err == nil && s.journal {
		s.names = append(s.names, s.made.Name)
	}
	return err
}

// saver makes one backup.
type saver struct {
	*Repository
	ctx     context.Context
	options SaveOptions
	known   map[string]storage.Object
	idKey   []byte // of the IDs of chunks
	pack    *zstd.Encoder
	sum     hash.Hash
	made    Saved
	began   time.Time
}

// chunk stores what is not there yet.
func (s *saver) chunk(content []byte) error {
	if err := s.ctx.Err(); err != nil {
		return context.Cause(s.ctx)
	}
	s.sum.Write(content)
	c := Chunk{hex.EncodeToString(digest(s.idKey, content)), int64(len(content))}
	s.made.Chunks = append(s.made.Chunks, c)
	s.made.Size += c.Size
	if _, ok := s.known[c.ID]; ok {
		return nil
	}
	sealed, err := s.seal(content)
	if err != nil {
		return err
	}
	name := path.Join(chunks, c.ID[:2], c.ID+"."+hexSum(sealed))
	if err := s.put(name, sealed); err != nil {
		return err
	}
	s.known[c.ID] = storage.Object{Name: name}
	return s.pace()
}

func (s *saver) seal(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, s.options.Recipients...)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(s.pack.EncodeAll(content, nil)); err != nil {
		return nil, err
	}
	err = w.Close() // writes the rest
	return out.Bytes(), err
}

// put stores an object and reads it back: a storage that loses what it took is found
// out now.
func (s *saver) put(name string, content []byte) error {
	if err := s.storage.Put(s.ctx, name, content); err != nil {
		return err
	}
	s.made.Added += int64(len(content))
	got, err := s.storage.Get(s.ctx, name, int64(len(content)))
	if err != nil {
		return fmt.Errorf("read %s back: %w", name, err)
	}
	if !bytes.Equal(got, content) {
		return fmt.Errorf("%s reads back differently: the storage is damaged", name)
	}
	return nil
}

// pace waits until what was sent is no more than the rate allows.
func (s *saver) pace() error {
	if s.options.Rate <= 0 {
		return nil
	}
	due := s.began.Add(time.Duration(float64(s.made.Added) / float64(s.options.Rate) * float64(time.Second)))
	select {
	case <-time.After(time.Until(due)):
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
