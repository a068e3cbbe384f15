// Package collect deletes what no row names any longer: old rows, blobs, unpacked
// layers and images.
package collect

import (
	"context"
	"time"

	"cupola/server/admin/stack"
	"cupola/store"
	"cupola/store/blob"
)

// How often what no row names is deleted. Who pushes and deletes apps in a loop
// must not fill the disk meanwhile.
const (
	blobInterval = time.Minute
	tidyInterval = 10 * time.Minute   // of old rows and images
	imageAge     = 7 * 24 * time.Hour // since the last use
)

// blobGrace is how long a blob, or a droplet that is kept unpacked, may go without a row that names it: an
// upload names its blobs when it ends, and a staging the droplet.
const blobGrace = 10 * time.Minute

// Collector deletes what no row of a daemon names.
type Collector struct {
	Blobs  *blob.Store
	Stacks *stack.Library
}

// Run deletes old rows, and blobs, unpacked layers and images that no row names,
// until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	often, seldom := time.NewTicker(blobInterval), time.NewTicker(tidyInterval)
	defer often.Stop()
	defer seldom.Stop()
	for {
		prune := c.pruneBlobs
		select {
		case <-ctx.Done():
			return nil
		case <-often.C:
		case <-seldom.C:
			prune = c.pruneOld
		}
		if err := prune(ctx); err != nil && ctx.Err() == nil {
			c.Stacks.Log.ErrorContext(ctx, "not tidied", "err", err)
		}
	}
}

func (c *Collector) pruneOld(ctx context.Context) error {
	if err := c.Stacks.Store.DropOld(ctx); err != nil {
		return err
	}
	_, err := c.Stacks.Collect(ctx, stack.GCRequest{OlderThan: imageAge})
	return err
}

func (c *Collector) pruneBlobs(ctx context.Context) error {
	c.Stacks.GC.Lock()
	defer c.Stacks.GC.Unlock()
	keep := map[string]bool{}
	if err := c.Stacks.Store.Read(ctx, func(tx *store.Tx) error { return tx.NamedBlobs(keep) }); err != nil {
		return err
	}
	if _, err := c.Blobs.Prune(ctx, keep, blobGrace); err != nil {
		return err
	}
	return c.Stacks.Roots.Layers.Prune(ctx, func(digest string) bool { return keep[digest] }, blobGrace)
}
