package offsite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"cupola/runtime/durable"
	"cupola/runtime/fault"
	"cupola/server/admin/archive"
	"cupola/server/admin/backup"
	"cupola/server/admin/repository"
	"cupola/server/admin/repository/storage"
	"cupola/server/admin/steps"
)

// Config is what a Keeper is made of.
type Config struct {
	Flags
	Maker   *backup.Maker
	Secret  string // the file of the key that names chunks
	State   string // the file that remembers what was done
	Version string // of this cupola
	Log     *slog.Logger
}

// Keeper makes backups when they are due, one at a time.
type Keeper struct {
	Config
	turn chan struct{} // holds one token: who has it makes a backup

	replaced bool // by a Keeper with other flags; only who has the turn reads and writes it

	mu     sync.Mutex
	states map[string]*Status // by address

	followers map[string]*follower // by address; none if changes are not sent
}

// Status is what is known of the backups at one address.
type Status struct {
	To       string
	Last     Made      `json:",omitzero"`  // the last one that was made
	Tried    time.Time `json:",omitzero"`  // when the last attempt began
	Error    string    `json:",omitempty"` // of the last attempt
	Failures int       `json:",omitempty"` // since the last one that was made
	Next     time.Time `json:",omitzero"`
	Running  bool      `json:",omitempty"`
	Reach    Reach     `json:",omitzero"` // with what changed since the last backup
}

// IsMade reports whether the last attempt made a backup: if there is an error all the same, something after it failed.
func (s Status) IsMade() bool { return s.Failures == 0 }

// Made is a backup that was made.
type Made struct {
	Name    string
	At      time.Time // when it was begun
	Seconds float64
	Size    int64 // bytes
	Added   int64 // bytes that were sent
	Removed int   // backups that were not kept any longer

	Recipients []string `json:",omitempty"` // as the flags had them; nil: of an earlier cupola
}

// Which errors a Keeper answers with.
var (
	errNone     = errors.New("no backups are configured: start the daemon with --backup-to and --backup-recipient")
	errReplaced = errors.New("the flags of backups changed meanwhile: run the command again")
)

// How long a Keeper waits after failures, and how often it looks whether a backup is due.
const (
	retryMin = time.Minute
	retryMax = time.Hour
	look     = 15 * time.Second
)

// New makes a Keeper that remembers what an earlier one did.
func New(c Config) *Keeper {
	c.Every = cmp.Or(c.Every, 24*time.Hour)
	k := &Keeper{Config: c, turn: make(chan struct{}, 1), states: map[string]*Status{}, followers: map[string]*follower{}}
	k.turn <- struct{}{}
	var saved []Status
	if err := durable.ReadJSON(c.State, &saved); err != nil {
		c.Log.Warn("what was backed up away from this machine is not remembered: backups are due now", "err", err)
	}
	for _, to := range c.To {
		k.states[to] = &Status{To: to}
		if c.ChangesEvery > 0 {
			k.followers[to] = &follower{Keeper: k, to: to}
		}
	}
	for _, s := range saved {
		if _, ok := k.states[s.To]; ok {
			s.Reach = Reach{}
			k.states[s.To] = &s
		}
	}
	return k
}

// Run makes backups, and sends what changes after each, until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	if len(k.To) == 0 {
		<-ctx.Done()
		return nil
	}
	group, ctx := fault.NewGroup(ctx)
	for _, f := range k.followers {
		group.Go(fault.Loop(ctx, "offsite", f.run))
	}
	group.Go(fault.Loop(ctx, "offsite", k.makeBackups))
	return group.Wait()
}

// makeBackups makes backups when they are due.
func (k *Keeper) makeBackups(ctx context.Context) error {
	t := time.NewTicker(look)
	defer t.Stop()
	for {
		for _, to := range k.To {
			if ctx.Err() == nil && !k.due(to, time.Now()).After(time.Now()) {
				_ = k.save(ctx, to, func(steps.Step) {}) // it is in the log and in the status
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// due is when the next backup of an address is made: at once if changes wait for one, or its recipients cannot read the last one.
func (k *Keeper) due(to string, now time.Time) time.Time {
	s := k.status(to)
	f, others := k.followers[to], s.Last.Recipients != nil && !slices.Equal(s.Last.Recipients, k.Recipients)
	if s.Failures == 0 && (others || f != nil && f.needsBackup()) {
		return now
	}
	return s.due(now, k.Every)
}

// due is when the next backup is made. A clock that was ahead does not put it off.
func (s Status) due(now time.Time, every time.Duration) time.Time {
	from, wait := s.Last.At, every
	if s.Failures > 0 {
		from, wait = s.Tried, min(retryMin<<min(s.Failures-1, 10), retryMax, every)
	}
	if from.After(now) {
		return now
	}
	return from.Add(wait)
}

// Statuses describes the backups at each address.
func (k *Keeper) Statuses(context.Context) (all []Status, err error) {
	for _, to := range k.To {
		s := k.status(to)
		s.Next = k.due(to, time.Now())
		all = append(all, s)
	}
	if len(all) == 0 {
		err = errNone
	}
	return all, err
}

// Failing lists the addresses at which the last backup failed.
func (k *Keeper) Failing() (all []Status) {
	for _, to := range k.To {
		if s := k.status(to); s.Error != "" {
			all = append(all, s)
		}
	}
	return all
}

func (k *Keeper) status(to string) Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := *k.states[to]
	if f := k.followers[to]; f != nil {
		s.Reach = f.reaches()
	}
	return s
}

// Lag is how far an address is behind.
type Lag struct {
	To      string
	Seconds float64
	Due     float64 // seconds that it may be behind by the configuration
	Reach   Reach
}

// Lags reports how far the addresses are behind, of those that follow a backup.
func (k *Keeper) Lags() (all []Lag) {
	for _, to := range k.To {
		if f := k.followers[to]; f != nil {
			if r := f.reaches(); !r.Since.IsZero() {
				all = append(all, Lag{to, r.Behind(time.Now()).Seconds(), 2 * k.ChangesEvery.Seconds(), r})
			}
		}
	}
	return all
}

// RunRequest asks for a backup now.
type RunRequest struct {
	To string `help:"Only there; by default at each address of the configuration." placeholder:"ADDRESS"`
}

// RunNow makes backups now, due or not.
func (k *Keeper) RunNow(ctx context.Context, in RunRequest, report steps.Func) ([]Status, error) {
	var faults []error
	done := false
	for _, to := range k.To {
		if in.To == "" || in.To == to {
			done = true
			faults = append(faults, k.save(ctx, to, report))
		}
	}
	if !done {
		if len(k.To) == 0 {
			return nil, errNone
		}
		return nil, fmt.Errorf("no backups are made at %q: 'cupola backups status' lists the addresses", in.To)
	}
	all, err := k.Statuses(ctx)
	return all, errors.Join(append(faults, err)...)
}

// save makes a backup at one address, and remembers how it went.
func (k *Keeper) save(ctx context.Context, to string, report steps.Func) error {
	select {
	case <-k.turn:
		defer func() { k.turn <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if k.replaced {
		return errReplaced
	}
	defer debug.FreeOSMemory() // a backup needs some MB, and the next one is a day away
	began := time.Now()
	k.change(to, func(s *Status) { s.Tried, s.Running = began.UTC().Truncate(time.Second), true })
	var made Made
	err := fault.Guard("offsite", func() (err error) {
		made, err = k.write(ctx, to, report)
		return err
	})
	if ctx.Err() != nil { // the daemon ends, or who asked went away: the storage has not failed
		k.change(to, func(s *Status) { s.Running = false })
		return context.Cause(ctx)
	}
	made.Seconds = time.Since(began).Seconds()
	if err = k.ended(to, made, err); err != nil {
		k.Log.ErrorContext(ctx, "backup away from this machine failed", "to", to, "made", made.Name != "", "err", err)
		return fmt.Errorf("%s: %w", to, err)
	}
	k.Log.InfoContext(ctx, "backed up away from this machine", "to", to, "backup", made.Name, "bytes", made.Size, "sent", made.Added)
	return nil
}

// ended remembers how an attempt ended. A backup can be made and something after it fail: the error says so.
func (k *Keeper) ended(to string, made Made, err error) error {
	if made.Name != "" && err != nil {
		err = fmt.Errorf("the backup %s was made, but %w", made.Name, err)
	}
	k.change(to, func(s *Status) {
		s.Running = false
		s.Error, s.Failures = "", s.Failures+1
		if made.Name != "" {
			s.Last, s.Failures = made, 0
		}
		if err != nil {
			s.Error = err.Error()
		}
	})
	return err
}

// change changes a status and writes all. A disk that takes nothing loses no more than
// when the next backup is due.
func (k *Keeper) change(to string, f func(*Status)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k.states[to])
	var all []Status
	for _, to := range k.To {
		s := *k.states[to]
		s.Running = false // it does not, in the next daemon
		all = append(all, s)
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = durable.Write(k.State, text, 0o600)
	}
	if err != nil {
		k.Log.Warn("what was backed up away from this machine is not remembered", "err", err)
	}
}

func (k *Keeper) write(ctx context.Context, to string, report steps.Func) (m Made, err error) {
	keep, err := k.keep()
	if err != nil {
		return m, err
	}
	secret, err := os.ReadFile(k.Secret)
	if err != nil {
		return m, err
	}
	s, err := storage.Open(ctx, to)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, err := repository.OpenFor(ctx, s, secret)
	if err != nil {
		return m, err
	}
	saved, err := k.saveAll(ctx, to, r, report)
	if err != nil {
		return m, err
	}
	m = Made{Name: saved.Name, At: saved.Created, Size: saved.Size, Added: saved.Added, Recipients: k.Recipients}
	removed, err := r.Prune(ctx, keep)
	if err != nil {
		return m, fmt.Errorf("old ones were not removed: %w", err)
	}
	m.Removed = len(removed)
	return m, nil
}

// Behind is how many seconds each address is behind.
func (k *Keeper) Behind() map[string]float64 {
	all := map[string]float64{}
	for _, l := range k.Lags() {
		all[l.To] = l.Seconds
	}
	return all
}

// saveAll makes a backup of all in a repository.
func (k *Keeper) saveAll(ctx context.Context, to string, r *repository.Repository, report steps.Func) (repository.Saved, error) {
	o, err := k.saveOptions()
	if err != nil {
		return repository.Saved{}, err
	}
	var members []archive.Member
	f, followed := k.followers[to], false
	o.Commit = func(s *repository.Snapshot) error {
		for _, m := range members {
			s.Files = append(s.Files, r.FileID(m.ID()))
		}
		if f != nil {
			followed = true
			_ = f.rebase(ctx, r, *s) // it is tried again, and in the log and the status
		}
		return nil
	}
	options := backup.Options{Hold: time.Minute, Version: k.Version, Members: func(all []archive.Member) { members = all }}
	saved, err := r.Save(ctx, o, func(w io.Writer) error {
		return k.Maker.Write(ctx, options, func(size int64) io.Writer {
			return &steps.Writer{To: w, Total: size, Report: func(done, total int64) { report(steps.Step{Step: "backup", Detail: to, Done: done, Total: total}) }}
		})
	})
	if err != nil && followed {
		f.forget()
	}
	return saved, err
}

func (k *Keeper) saveOptions() (repository.SaveOptions, error) {
	recipients, err := k.recipients()
	return repository.SaveOptions{Version: k.Version, Recipients: recipients, Rate: int64(k.Rate) << 20}, err
}
