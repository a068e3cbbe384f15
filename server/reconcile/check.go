package reconcile

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"

	"cupola/runtime/durable"
	"cupola/runtime/fairqueue"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// How many droplets are read at once, in all and for one organization.
const (
	maxChecks    = 2
	maxOrgChecks = 1
)

// checks reads droplets that builds would take, outside of the loop: a disk may have lost
// some of their bits, and reading all of them takes a while.
type checks struct {
	whole func(ctx context.Context, digest string) error
	say   func(lrp.LogLine)
	log   *slog.Logger
	done  func() // called after each
	queue *fairqueue.Queue

	running sync.WaitGroup

	mu     sync.Mutex
	builds map[string]*check
}

// check is of the droplet that one build would take.
type check struct {
	cancel context.CancelFunc
	over   bool
	err    error
}

// want begins to check the droplet that a build in an organization would take, unless that
// has begun. It reports whether the check is over, and what it found to be wrong.
func (c *checks) want(b *cf.Build, org string, d *cf.Droplet) (over bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.builds[b.GUID]; one != nil {
		return one.over, one.err
	}
	ctx, cancel := context.WithCancel(context.Background())
	one := &check{cancel: cancel}
	c.builds[b.GUID] = one
	app, droplet, digest := b.AppGUID, d.GUID, d.Digest
	c.running.Go(fault.Func("reconcile", func() {
		err := fault.Guard("reconcile", func() error { return c.read(ctx, org, digest) })
		if err != nil && ctx.Err() == nil {
			c.report(app, droplet, err)
		}
		c.mu.Lock()
		one.over, one.err = true, err
		c.mu.Unlock()
		c.done()
	}))
	return false, nil
}

// read reads a droplet when it is its organization's turn.
func (c *checks) read(ctx context.Context, org, digest string) error {
	slot, err := c.queue.Acquire(ctx, org)
	if err != nil {
		return err
	}
	defer slot.Release()
	return c.whole(ctx, digest)
}

// report says in the app's log why it is staged though nothing changed.
func (c *checks) report(appGUID, droplet string, err error) {
	found := "cannot be read"
	if errors.Is(err, fs.ErrNotExist) {
		found = "are gone"
	} else if errors.Is(err, durable.ErrDamaged) {
		found = "are damaged"
	}
	c.log.Warn("droplet cannot be used again", "droplet_guid", droplet, "err", err)
	line := note(appGUID, "Nothing changed since droplet %s, but its files %s: it is staged again", droplet, found)
	line.Target.Source = "STG"
	c.say(line)
}

// keep cancels and forgets the checks of other builds.
func (c *checks) keep(work []Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	staging := map[string]bool{}
	for _, w := range work {
		staging[w.GUID] = true
	}
	for guid, one := range c.builds {
		if !staging[guid] {
			one.cancel()
			delete(c.builds, guid)
		}
	}
}

// end ends all checks and waits for them.
func (c *checks) end() {
	c.keep(nil)
	c.running.Wait()
}
