package bbs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/server/desire"
	"cupola/store"
)

// apps are the DesiredLRPs of Cloud Foundry's apps. They are derived from rows,
// so what has changed is found by comparing.
type apps struct {
	Config
	hub *hub

	mu    sync.Mutex
	rows  *store.Reads
	known map[string]*bbspb.DesiredLRP // by process GUID
}

// newApps derives them when they are first asked for, or run runs.
func newApps(c Config, h *hub) *apps {
	a := &apps{Config: c, hub: h, rows: c.Store.Reads(), known: map[string]*bbspb.DesiredLRP{}}
	h.message = a.message
	return a
}

// retryInterval is the wait after a look that failed.
const retryInterval = time.Second

// run sends changes to subscribers until ctx ends.
func (a *apps) run(ctx context.Context) error {
	defer a.rows.Close()
	var retry <-chan time.Time
	for {
		select {
		case <-a.rows.Stale():
		case <-retry:
		case <-ctx.Done():
			return nil
		}
		retry = nil
		if a.hub.idle() {
			continue // who comes next looks first
		}
		if err := a.refresh(ctx); err != nil && ctx.Err() == nil {
			a.Log.ErrorContext(ctx, "desired LRPs of apps were not read", "err", err)
			retry = time.After(retryInterval)
		}
	}
}

// refresh looks at the apps, if they may have changed since the last look that
// went well, and tells what did.
func (a *apps) refresh(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refreshLocked(ctx)
}

func (a *apps) refreshLocked(ctx context.Context) error {
	if !a.rows.IsStale() {
		return nil
	}
	var list []desire.App
	err := a.rows.Read(ctx, func(tx *store.Tx) (err error) {
		list, err = a.Apps(tx)
		return err
	})
	if err != nil {
		return err
	}
	was := a.known
	a.known = make(map[string]*bbspb.DesiredLRP, len(list))
	var events []event
	for _, app := range list {
		d := model.Present(app)
		before := was[d.ProcessGuid]
		a.known[d.ProcessGuid] = d
		tag(before, d)
		if before == nil || before.ModificationTag.Index != d.ModificationTag.Index {
			events = append(events, desiredEvents(before, d)...)
		}
		delete(was, d.ProcessGuid)
	}
	for _, gone := range was {
		events = append(events, desiredEvents(gone, nil)...)
	}
	a.hub.publish(events)
	return nil
}

// tag gives d the tag it had, or the next one if it is not what it was. Across
// restarts of the daemon tags grow because time does.
func tag(before, d *bbspb.DesiredLRP) {
	d.ModificationTag = &bbspb.ModificationTag{Epoch: d.ProcessGuid, Index: uint32(time.Now().Unix())}
	if before == nil {
		return
	}
	now := d.ModificationTag
	d.ModificationTag = before.ModificationTag
	if !proto.Equal(before, d) {
		now.Index = max(now.Index, before.ModificationTag.Index+1)
		d.ModificationTag = now
	}
}

// list gives them all, ordered by GUID.
func (a *apps) list(ctx context.Context) ([]*bbspb.DesiredLRP, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.refreshLocked(ctx); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(a.known), func(x, y *bbspb.DesiredLRP) int { return cmp.Compare(x.ProcessGuid, y.ProcessGuid) }), nil
}

// message returns one as it was read last; nil for none.
func (a *apps) message(processGUID string) *bbspb.DesiredLRP {
	if !a.mu.TryLock() {
		return nil // its metric tags are not worth waiting for: a write may be
	}
	defer a.mu.Unlock()
	return a.known[processGUID]
}
