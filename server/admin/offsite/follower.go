package offsite

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/server/admin/backup"
	"cupola/server/admin/repository"
	"cupola/server/admin/repository/storage"
	"cupola/store"
)

// retryParts is how long a follower waits at most after it failed.
const retryParts = 30 * time.Second

// follower sends what changes after a backup to one address, as parts of that backup's
// journal.
type follower struct {
	*Keeper
	to string

	sending sync.Mutex // held while a part is made and sent, and by who touches what follows
	pages   *store.Pages
	base    string          // the backup that parts follow; "": not known yet
	files   map[string]bool // the FileIDs of what is in it
	fileID  func(id string) string
	chain   chain
	storage storage.Storage        // nil: not open
	journal *repository.Repository // of base; nil with storage

	mu       sync.Mutex
	reach    Reach
	unlisted bool // the newest backup does not say which files are in it
}

// Reach is how far an address goes.
type Reach struct {
	To    time.Time `json:",omitzero"`  // what was acknowledged by then is there
	Since time.Time `json:",omitzero"`  // from when on the address is followed: To is not before, or not known
	Error string    `json:",omitempty"` // why later changes are not there
}

// Behind is for how long changes have not reached the address. It is 0 if no backup is
// followed.
func (r Reach) Behind(now time.Time) time.Duration {
	from := r.Since
	if r.To.After(from) {
		from = r.To
	}
	if from.IsZero() {
		return 0
	}
	return max(0, now.Sub(from))
}

// run sends parts until ctx ends.
func (f *follower) run(ctx context.Context) (err error) {
	f.sending.Lock()
	f.pages, err = f.Maker.Stacks.Store.FollowPages(ctx)
	f.sending.Unlock()
	if err != nil {
		return err
	}
	defer f.stop(ctx)
	for failures := 0; ; {
		wait := f.ChangesEvery
		if err := fault.Guard("offsite", func() error { return f.tick(ctx) }); err == nil {
			failures = 0
		} else if failures++; failures > 1 {
			wait = max(wait, retryParts)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// stop ends what run began.
func (f *follower) stop(ctx context.Context) {
	f.sending.Lock()
	defer f.sending.Unlock()
	f.close()
	f.base, f.chain = "", chain{}
	_ = f.pages.Close(context.WithoutCancel(ctx)) // a store that is closed has ended its notes
	f.pages = nil
}

// tick sends what changed, if anything did.
func (f *follower) tick(ctx context.Context) error {
	f.sending.Lock()
	defer f.sending.Unlock()
	if f.base == "" || f.chain.sent == 0 { // a whole part is not worth gathering for an address that is away
		if err := f.open(ctx); err != nil || f.base == "" {
			return f.reached(ctx, time.Time{}, err)
		}
	}
	part, err := f.gather(ctx)
	if err != nil {
		return f.reached(ctx, time.Time{}, err)
	}
	at := part.At
	if part.Count > 0 {
		err = f.deliver(ctx, part)
	}
	return f.reached(ctx, at, errors.Join(err, part.Close()))
}

// gather makes the next part.
func (f *follower) gather(ctx context.Context) (*backup.Part, error) {
	for {
		next, whole := f.chain.next(), f.chain.sent == 0
		has := func(id string) bool {
			has, there := next.files.has(id)
			return has || !there && f.files[f.fileID(id)]
		}
		part, err := f.Maker.GatherPart(ctx, f.pages, backup.PartOptions{Version: f.Version, Also: next.since, Whole: whole, Has: has})
		if part != nil {
			f.chain.changed(part)
		}
		if err == nil && part.Whole && !whole { // it lacks the files of the parts before
			err = part.Close()
			if err == nil {
				continue
			}
		}
		return part, err
	}
}

// deliver sends a part. A connection that was open may have ended since: it is opened again.
func (f *follower) deliver(ctx context.Context, part *backup.Part) error {
	for {
		was := f.storage != nil
		err := f.open(ctx)
		if err == nil {
			err = f.save(ctx, f.journal, part)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		f.close()
		if !was {
			return err
		}
	}
}

// save sends a part to a journal.
func (f *follower) save(ctx context.Context, journal *repository.Repository, part *backup.Part) error {
	o, err := f.saveOptions()
	if err != nil {
		return err
	}
	o.After, o.At = f.chain.next().after, part.At
	saved, err := journal.Save(ctx, o, func(w io.Writer) error { return part.WriteTo(ctx, w) })
	if err != nil {
		return err
	}
	f.chain.add(saved.Name, part.IDs)
	return nil
}

// open connects to the address, and finds the backup to follow.
func (f *follower) open(ctx context.Context) error {
	if f.storage != nil {
		return nil
	}
	secret, err := os.ReadFile(f.Secret)
	if err != nil {
		return err
	}
	s, err := storage.Open(ctx, f.to)
	if err != nil {
		return err
	}
	r, err := repository.OpenFor(ctx, s, secret)
	if err == nil && f.base == "" {
		f.fileID = r.FileID
		err = f.findBase(ctx, r)
	}
	if err != nil || f.base == "" {
		return errors.Join(err, s.Close())
	}
	f.storage, f.journal = s, r.Journal(f.base)
	return nil
}

// findBase finds the newest backup, if there is one that says which files are in it. Those of an
// earlier cupola do not: all files would be sent once more.
func (f *follower) findBase(ctx context.Context, r *repository.Repository) error {
	latest, err := r.Find(ctx, "latest")
	if errors.Is(err, repository.ErrNone) {
		return nil
	}
	if err == nil && len(latest.Files) > 0 {
		f.follow(latest)
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unlisted = err == nil
	return err
}

// needsBackup reports whether changes cannot be sent until there is another backup.
func (f *follower) needsBackup() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unlisted
}

// follow begins the journal of a backup.
func (f *follower) follow(s repository.Snapshot) {
	f.mu.Lock()
	f.unlisted = false
	f.mu.Unlock()
	f.base, f.files, f.chain = s.Name, map[string]bool{}, chain{}
	for _, id := range s.Files {
		f.files[id] = true
	}
}

// close ends the connection.
func (f *follower) close() {
	if f.storage != nil {
		_ = f.storage.Close() // what it acknowledged is there
	}
	f.storage, f.journal = nil, nil
}

// rebase begins the journal of a backup that is all but made, with its first part: so the
// newest backup goes no less far than the one before.
func (f *follower) rebase(ctx context.Context, r *repository.Repository, s repository.Snapshot) error {
	f.sending.Lock()
	defer f.sending.Unlock()
	if f.pages == nil {
		return nil
	}
	f.close()
	f.fileID = r.FileID
	f.follow(s)
	part, err := f.gather(ctx)
	if err != nil {
		return err
	}
	at := part.At
	return f.reached(ctx, at, errors.Join(f.save(ctx, r.Journal(s.Name), part), part.Close()))
}

// forget makes the next tick look for the backup to follow.
func (f *follower) forget() {
	f.sending.Lock()
	defer f.sending.Unlock()
	f.close()
	f.base = ""
}

// reached notes how far the address goes, and logs when that changes.
func (f *follower) reached(ctx context.Context, at time.Time, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.reach
	switch {
	case err != nil:
		f.reach.Error = err.Error()
	case f.base == "":
		f.reach = Reach{}
		return nil
	default:
		f.reach.To, f.reach.Error = at, ""
	}
	if f.reach.Since.IsZero() {
		f.reach.Since = time.Now()
	}
	if err != nil && was.Error == "" {
		f.Log.WarnContext(ctx, "what changed since the last backup does not get to where backups go; it is tried again", "to", f.to, "err", err)
	}
	if err == nil && was.Error != "" {
		f.Log.InfoContext(ctx, "what changed since the last backup gets to where backups go again", "to", f.to)
	}
	return err
}

func (f *follower) reaches() Reach {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reach
}
