package repository

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"cupola/runtime/pattern"
	"cupola/server/admin/repository/storage"
)

// format is the number of this layout.
const format = 1

// The names of objects.
const (
	ownerName  = "repository.json"
	snapshots  = "snapshots"
	chunks     = "chunks"
	snapSuffix = ".json"
	stamp      = "20060102T150405Z"
)

const (
	maxObject   = chunkMax + 1<<20 // bytes of a chunk, compressed and encrypted
	maxSnapshot = 256 << 20
)

var (
	digestName = pattern.Lazy(`^[0-9a-f]{64}$`)
	chunkName  = pattern.Lazy(`^chunks/[0-9a-f]{2}/[0-9a-f]{64}\.[0-9a-f]{64}$`)
)

// ErrNone says that there is no backup yet.
var ErrNone = errors.New("there is no backup yet")

// Repository is the backups of one cupola in a storage.
type Repository struct {
	storage storage.Storage
	key     []byte // names chunks; nil: only to read
	journal bool   // what was listed is kept, in known and names:
	known   map[string]storage.Object
	names   []string
	halves  []string // of objects, that a part which was killed left
}

// owner says whose a repository is.
type owner struct {
	Format int
	ID     string // of the cupola: a digest of its key
}

// Open opens a repository to read.
func Open(ctx context.Context, s storage.Storage) (*Repository, error) {
	o, err := readOwner(ctx, s)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, errors.New("there are no backups of cupola")
	}
	if err == nil {
		err = o.check()
	}
	return &Repository{storage: s}, err
}

// OpenFor opens the repository of the cupola that has the secret, and makes it where
// nothing is.
func OpenFor(ctx context.Context, s storage.Storage, secret []byte) (*Repository, error) {
	r := &Repository{storage: s, key: derive(secret, "chunks")}
	mine := owner{Format: format, ID: hex.EncodeToString(derive(secret, "owner"))[:32]}
	o, err := readOwner(ctx, s)
	if errors.Is(err, storage.ErrNotFound) {
		text, err := json.Marshal(mine)
		if err != nil {
			return nil, err
		}
		if err = s.Put(ctx, ownerName, text); err == nil {
			return r, nil
		}
		// Another connection of the same cupola may have made it meanwhile.
		if o, _ := readOwner(ctx, s); o != mine {
			return nil, err
		}
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.ID != mine.ID {
		return nil, errors.New("it has the backups of another cupola: give each its own directory or prefix")
	}
	return r, nil
}

// derive makes a key of a secret for one purpose.
func derive(secret []byte, purpose string) []byte {
	return digest(secret, []byte("cupola backups: "+purpose))
}

func digest(key, content []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(content)
	return h.Sum(nil)
}

func readOwner(ctx context.Context, s storage.Storage) (o owner, err error) {
	text, err := s.Get(ctx, ownerName, 1<<10)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return o, fmt.Errorf("%s does not parse: %w", ownerName, err)
	}
	return o, nil
}

func (o owner) check() error {
	if o.Format != format {
		return fmt.Errorf("its format is %d; this cupola knows %d", o.Format, format)
	}
	return nil
}

// Snapshot is a backup.
type Snapshot struct {
	Name    string    `json:"-"` // when it was created, like 20261127T030000Z
	Created time.Time // when it was begun; of a part, as of when it is
	Version string    // of the cupola that made it
	Host    string    // the machine's name
	Size    int64     // bytes of the stream
	SHA256  string    // of the stream, in hex
	After   string    `json:",omitempty"` // of a part: the one that it follows; "": the backup
	Files   []string  `json:",omitempty"` // of a backup: the FileIDs of what is in it
	Readers string    `json:",omitempty"` // the ID of its recipients; "": of an earlier cupola
	Apart   bool      `json:",omitempty"` // its chunks have IDs that are of its recipients, too
	Chunks  []Chunk
}

// Chunk is a part of a stream.
type Chunk struct {
	ID   string // a keyed digest of the content, in hex
	Size int64  // bytes of the content
}

// Names lists the snapshots, the oldest first.
func (r *Repository) Names(ctx context.Context) (names []string, err error) {
	if r.names != nil {
		return r.names, nil
	}
	err = r.storage.List(ctx, snapshots, func(o storage.Object) error {
		name, ok := strings.CutSuffix(path.Base(o.Name), snapSuffix)
		if _, err := time.Parse(stamp, name); ok && err == nil {
			names = append(names, name)
		}
		r.noteHalf(o)
		return nil
	})
	slices.Sort(names)
	if err == nil && r.journal {
		r.names = append([]string{}, names...)
	}
	return names, err
}

// Find returns the snapshot of a name, or the newest one for "latest".
func (r *Repository) Find(ctx context.Context, name string) (Snapshot, error) {
	name, err := r.resolve(ctx, name)
	if err != nil {
		return Snapshot{}, err
	}
	text, err := r.storage.Get(ctx, path.Join(snapshots, name+snapSuffix), maxSnapshot)
	if errors.Is(err, storage.ErrNotFound) {
		return Snapshot{}, missingError{name}
	}
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Name: name}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, damaged("backup %s is damaged: it does not parse: %w", name, err)
	}
	return s, s.check()
}

// missingError says that there is no snapshot of a name. It is a storage.ErrNotFound.
type missingError struct{ name string }

func (e missingError) Error() string      { return "there is no backup " + e.name }
func (missingError) Is(target error) bool { return target == storage.ErrNotFound }

// resolve is the name of a snapshot, also for "latest".
func (r *Repository) resolve(ctx context.Context, name string) (string, error) {
	if name == "latest" {
		names, err := r.Names(ctx)
		if err != nil {
			return "", err
		}
		if len(names) == 0 {
			return "", ErrNone
		}
		return names[len(names)-1], nil
	}
	if _, err := time.Parse(stamp, name); err != nil {
		return "", fmt.Errorf("%q is not the name of a backup: give one like 20261127T030000Z, or latest", name)
	}
	return name, nil
}

// check refuses what no repository wrote, before anything is made of it.
func (s Snapshot) check() error {
	var size int64
	for _, c := range s.Chunks {
		if !digestName().MatchString(c.ID) || c.Size < 1 || c.Size > chunkMax {
			return damaged("backup %s is damaged: it names the chunk %.80q of %d bytes", s.Name, c.ID, c.Size)
		}
		size += c.Size
	}
	if size != s.Size || !digestName().MatchString(s.SHA256) {
		return damaged("backup %s is damaged: its chunks have %d bytes of %d", s.Name, size, s.Size)
	}
	return nil
}

// stored are the chunks that are there: the names of their objects, by their IDs.
func (r *Repository) stored(ctx context.Context) (map[string]storage.Object, error) {
	if r.known != nil {
		return r.known, nil
	}
	all := map[string]storage.Object{}
	err := r.storage.List(ctx, chunks, func(o storage.Object) error {
		if chunkName().MatchString(o.Name) {
			all[idOf(o.Name)] = o
		}
		r.noteHalf(o)
		return nil
	})
	if err == nil && r.journal {
		r.known = all
	}
	return all, err
}

// idOf is the ID of the chunk that an object has.
func idOf(name string) string {
	id, _, _ := strings.Cut(path.Base(name), ".")
	return id
}

// ParseRecipients reads public keys, like age1….
func ParseRecipients(keys []string) ([]age.Recipient, error) {
	if len(keys) == 0 {
		return nil, errors.New("give the public key that backups are encrypted for: 'cupola backups key FILE' makes a pair")
	}
	all, err := age.ParseRecipients(strings.NewReader(strings.Join(keys, "\n")))
	if err != nil {
		return nil, fmt.Errorf("give public keys of age, like age1…: %w", err)
	}
	return all, nil
}
