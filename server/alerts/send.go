package alerts

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"cupola/runtime/durable"
	"cupola/runtime/fault"
	"cupola/store"
	"cupola/store/cf"
)

// sendTime is how long a target may take to take a message.
const sendTime = 30 * time.Second

// gap is the shortest time between two messages to a target: what happens meanwhile
// goes into the next one.
const gap = 20 * time.Second

// The pauses after a message that was not taken: twice as long each time.
const (
	firstRetry = 5 * time.Second
	maxRetry   = 10 * time.Minute
)

// post is a target with the events that wait for it, the oldest first.
type post struct {
	target *cf.AlertTarget
	events []cf.AlertEvent
}

// send sends what waits until ctx ends.
func (l *Loop) send(ctx context.Context) error {
	const name = "alert notices"
	defer l.workers.Wait()
	return store.Derive(store.As(ctx, "alerts"), l.Store, store.Derivation[[]post]{Name: name, Read: readPosts, Use: l.sendAll, Wake: l.wake, Log: l.Log})
}

func readPosts(tx *store.Tx) (all []post, err error) {
	targets, err := store.AlertTargets.All(tx)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		p, err := readPost(tx, t)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func readPost(tx *store.Tx, t *cf.AlertTarget) (p post, err error) {
	notices, err := store.AlertNotices.Some(tx, store.Query{Where: map[string][]string{"target_guids": {t.GUID}}}, maxEvents)
	p.target = t
	for _, n := range notices {
		p.events = append(p.events, n.Event)
	}
	return p, err
}

// sendAll begins what is due, and returns when the next message is.
func (l *Loop) sendAll(ctx context.Context, all []post) (next time.Time, err error) {
	if err := l.writeStatus(all); err != nil {
		l.Log.WarnContext(ctx, "targets of alerts that fail were not noted for doctor", "err", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range all {
		switch at := p.target.TryAt; {
		case len(p.events) == 0 || l.busy[p.target.GUID]:
		case time.Now().Before(at):
			if next.IsZero() || at.Before(next) {
				next = at
			}
		default:
			l.busy[p.target.GUID] = true
			l.workers.Go(fault.Func("alerts", func() { l.deliver(ctx, p.target.GUID) }))
		}
	}
	return next, nil
}

// deliver sends a target's next message and writes how it went. It reads the events
// once more: those that began this may have been sent since they were read. A message
// that the end of ctx interrupts is sent by the next Run.
func (l *Loop) deliver(ctx context.Context, target string) {
	defer l.release(target)
	var p post
	err := l.Store.Read(ctx, func(tx *store.Tx) error {
		t, err := store.AlertTargets.Get(tx, target)
		if err == nil {
			p, err = readPost(tx, t)
		}
		return err
	})
	if err != nil || len(p.events) == 0 || time.Now().Before(p.target.TryAt) {
		return // it is gone or was notified: otherwise changed rows begin this again
	}
	taken, err := l.post(ctx, p.target, p.events)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		l.Log.WarnContext(ctx, "a target takes no alerts", "target", p.target.Name, "err", err)
	}
	l.record(ctx, p, taken, err)
}

// record writes the outcome of a message, and retries until it is written: on a
// full disk, the message would be sent again and again.
func (l *Loop) record(ctx context.Context, p post, taken int, failure error) {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := l.Store.Write(ctx, func(tx *store.Tx) error { return write(tx, p, taken, failure) })
		if err == nil || ctx.Err() != nil {
			return
		}
		l.Log.ErrorContext(ctx, "outcome of sent alerts was not written", "target", p.target.Name, "err", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func (l *Loop) release(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, target)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// post sends events at once, as many as the message holds.
func (l *Loop) post(ctx context.Context, t *cf.AlertTarget, events []cf.AlertEvent) (taken int, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	err = fault.Guard("alerts", func() (err error) {
		taken, err = transports[t.Kind](ctx, t.Settings, message{l.Domain, l.Console, events})
		return err
	})
	return taken, redact(err, t.Settings)
}

// transport sends a message, and returns how many of its events were in it.
type transport func(ctx context.Context, s cf.AlertSettings, m message) (taken int, err error)

var transports = map[string]transport{cf.AlertWebhook: sendWebhook, cf.AlertMail: sendMail, cf.AlertCommand: runCommand}

// write writes the outcome of a message.
func write(tx *store.Tx, p post, taken int, failure error) error {
	t, err := store.AlertTargets.Get(tx, p.target.GUID)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if failure != nil {
		fails(t, failure, tx.Now)
		return store.AlertTargets.Update(tx, t)
	}
	works(t, tx.Now)
	for _, e := range p.events[:taken] {
		if err := store.AlertNotices.Delete(tx, e.ID); err != nil {
			return err
		}
	}
	return store.AlertTargets.Update(tx, t)
}

func works(t *cf.AlertTarget, now time.Time) {
	t.SentAt, t.TryAt, t.Tries, t.Failure, t.FailingSince = now, now.Add(gap), 0, "", time.Time{}
}

func fails(t *cf.AlertTarget, failure error, now time.Time) {
	if t.FailingSince.IsZero() {
		t.FailingSince = now
	}
	t.TryAt = now.Add(min(firstRetry<<min(t.Tries, 20), maxRetry))
	t.Tries++
	t.Failure = clean(failure.Error(), maxText)
}

// StatusName is the name, in a data directory, of the file that says which targets fail.
const StatusName = "alerts.json"

// FailingTarget is a target that takes no messages, as StatusFile holds it.
type FailingTarget struct {
	Name    string    `json:"name"`
	Since   time.Time `json:"since"`
	Error   string    `json:"error"`
	Waiting int       `json:"waiting"` // events of the next message
}

// ReadFailing reads which targets fail, by the last daemon of a data directory.
func ReadFailing(file string) (all []FailingTarget, err error) {
	err = durable.ReadJSON(file, &all)
	return all, err
}

// writeStatus writes which targets fail, for doctor.
func (l *Loop) writeStatus(all []post) error {
	failing := []FailingTarget{}
	for _, p := range all {
		if t := p.target; !t.FailingSince.IsZero() {
			failing = append(failing, FailingTarget{t.Name, t.FailingSince.UTC(), t.Failure, len(p.events)})
		}
	}
	slices.SortFunc(failing, func(a, b FailingTarget) int { return a.Since.Compare(b.Since) })
	text, err := json.Marshal(failing)
	if err != nil || string(text) == l.status || l.StatusFile == "" {
		return err
	}
	if err := durable.Ensure(l.StatusFile, append(text, '\n'), 0o600); err != nil {
		return err
	}
	l.status = string(text)
	return nil
}
