package repository

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"cupola/server/admin/repository/storage"
)

// journals is the folder of what changed since backups.
const journals = "journal"

// Journal is the repository of the parts that follow a backup: each is a Snapshot of what
// changed since the one in After, or since the backup. Its chunks are its own, so that it goes
// with the backup. It lists the storage once: no one else may change it meanwhile.
func (r *Repository) Journal(base string) *Repository {
	return &Repository{storage: within{r.storage, path.Join(journals, base)}, key: r.key, journal: true}
}

// within is a folder of a storage.
type within struct {
	storage.Storage
	folder string
}

func (w within) Put(ctx context.Context, name string, content []byte) error {
	return w.Storage.Put(ctx, path.Join(w.folder, name), content)
}

func (w within) Get(ctx context.Context, name string, limit int64) ([]byte, error) {
	return w.Storage.Get(ctx, path.Join(w.folder, name), limit)
}

func (w within) List(ctx context.Context, folder string, f func(storage.Object) error) error {
	return w.Storage.List(ctx, path.Join(w.folder, folder), func(o storage.Object) error {
		o.Name = strings.TrimPrefix(o.Name, w.folder+"/")
		return f(o)
	})
}

func (w within) Remove(ctx context.Context, name string) error {
	return w.Storage.Remove(ctx, path.Join(w.folder, name))
}

// noteHalf notes what is left of an object of a journal.
func (r *Repository) noteHalf(o storage.Object) {
	if r.journal && o.Half() {
		r.halves = append(r.halves, o.Name)
	}
}

// dropHalves removes what killed parts left: no one else writes here.
func (r *Repository) dropHalves(ctx context.Context) error {
	for _, name := range r.halves {
		if err := r.storage.Remove(ctx, name); err != nil {
			return err
		}
	}
	r.halves = nil
	return nil
}

// FileID is what a Snapshot's Files has for a file, so that who has no key cannot try
// whether one is there.
func (r *Repository) FileID(id string) string {
	return hex.EncodeToString(digest(r.key, []byte("file "+id))[:16])
}

// Reach is how far a backup goes with its parts.
type Reach struct {
	Base  Snapshot
	Parts []Snapshot // to be applied in this order
	Left  error      // why the newest part is left out; nil: none is
}

// To is the time as of which the state is.
func (r Reach) To() time.Time {
	if n := len(r.Parts); n > 0 {
		return r.Parts[n-1].Created
	}
	return r.Base.Created
}

// Reach finds a backup and the parts that follow it, up to a time, the zero one for all.
// For "latest" it is the backup that goes farthest by then. What follows a damaged part is left out.
func (r *Repository) Reach(ctx context.Context, name string, to time.Time) (Reach, error) {
	if name != "latest" {
		return r.reachOf(ctx, name, to)
	}
	names, err := r.Names(ctx)
	if err != nil {
		return Reach{}, err
	}
	if len(names) == 0 {
		return Reach{}, ErrNone
	}
	if !to.IsZero() {
		names = slices.DeleteFunc(names, func(name string) bool { return name > to.UTC().Format(stamp) })
	}
	if len(names) == 0 {
		return Reach{}, fmt.Errorf("there is no backup from %s or before", to.UTC().Format(time.RFC3339))
	}
	found, err := r.reachOf(ctx, names[len(names)-1], to)
	if err != nil || len(found.Parts) > 0 || len(names) == 1 {
		return found, err
	}
	// Parts follow the one before while a backup is made, and until the first part of that gets there.
	if before, err := r.reachOf(ctx, names[len(names)-2], to); err == nil && before.To().After(found.To()) {
		return before, nil
	}
	return found, nil
}

func (r *Repository) reachOf(ctx context.Context, name string, to time.Time) (found Reach, err error) {
	if found.Base, err = r.Find(ctx, name); err != nil {
		return found, err
	}
	if !to.IsZero() && found.Base.Created.After(to) {
		return found, fmt.Errorf("backup %s is later than %s: give an earlier one, or latest", found.Base.Name, to.UTC().Format(time.RFC3339))
	}
	journal := r.Journal(found.Base.Name)
	names, err := journal.Names(ctx)
	if err != nil {
		return found, err
	}
	read := map[string]readPart{}
	for _, part := range slices.Backward(names) {
		if !to.IsZero() && part > to.UTC().Format(stamp) {
			continue
		}
		found.Parts, err = journal.chain(ctx, part, read)
		if _, damaged := errors.AsType[*DamageError](err); !damaged {
			return found, err
		}
		found.Parts, found.Left = nil, cmp.Or(found.Left, err)
	}
	return found, nil
}

// LastPart is as of when the newest part of a backup is; the zero time if there is none.
func (r *Repository) LastPart(ctx context.Context, base string) (time.Time, error) {
	names, err := r.Journal(base).Names(ctx)
	return newest(names), err
}

// readPart is a part that was looked for, and how it is damaged.
type readPart struct {
	Snapshot
	damage error
}

// chain finds a part and those that it follows, the oldest first, and reads all of their chunks, but
// for those that are in read, which it adds to.
func (r *Repository) chain(ctx context.Context, name string, read map[string]readPart) (parts []Snapshot, err error) {
	for before := ""; name != ""; {
		if !slices.Contains(r.names, name) || before != "" && name >= before {
			return nil, damaged("the part %s, which %s follows, is not there", name, before)
		}
		part, ok := read[name]
		if !ok {
			if part, err = r.readPart(ctx, name); err != nil {
				return nil, err
			}
			read[name] = part
		}
		if part.damage != nil {
			return nil, part.damage
		}
		parts, before, name = append(parts, part.Snapshot), name, part.After
	}
	slices.Reverse(parts)
	return parts, nil
}

// readPart finds a part and reads its chunks.
func (r *Repository) readPart(ctx context.Context, name string) (readPart, error) {
	s, err := r.Find(ctx, name)
	if err == nil {
		err = r.verifyChunks(ctx, s)
	}
	if _, damaged := errors.AsType[*DamageError](err); damaged {
		return readPart{s, err}, nil
	}
	return readPart{Snapshot: s}, err
}

// verifyChunks reads the chunks of a part.
func (r *Repository) verifyChunks(ctx context.Context, s Snapshot) error {
	known, err := r.stored(ctx)
	if err != nil {
		return err
	}
	for _, c := range s.Chunks {
		object, ok := known[c.ID]
		if !ok {
			return damaged("part %s: the chunk %s is not there", s.Name, c.ID)
		}
		if _, err := r.read(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// dropJournals removes the journals of all backups but some.
func (r *Repository) dropJournals(ctx context.Context, keep []string) error {
	return r.storage.List(ctx, journals, func(o storage.Object) error {
		base, _, _ := strings.Cut(strings.TrimPrefix(o.Name, journals+"/"), "/")
		if slices.Contains(keep, base) {
			return nil
		}
		return r.storage.Remove(ctx, o.Name)
	})
}

// DamageError says that something which is stored is not what was written.
type DamageError struct{ error }

func damaged(format string, args ...any) error { return &DamageError{fmt.Errorf(format, args...)} }

// Unwrap returns what was found.
func (e *DamageError) Unwrap() error { return e.error }
