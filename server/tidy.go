package server

import (
	"context"
	"time"

	"cupola/store"
)

// How often what no row names is deleted. Who pushes and deletes apps in a loop
// must not fill the disk meanwhile.
const (
	blobInterval = time.Minute
	tidyInterval = 10 * time.Minute   // of old rows and images
	imageAge     = 7 * 24 * time.Hour // since the last use
)

// blobGrace is how long a blob may go without a row that names it: an upload
// names its blobs when it ends.
const blobGrace = 10 * time.Minute

// tidy deletes old rows, and blobs, unpacked layers and images that no row names,
// until ctx ends.
func (d *daemon) tidy(ctx context.Context) error {
	often, seldom := time.NewTicker(blobInterval), time.NewTicker(tidyInterval)
	defer often.Stop()
	defer seldom.Stop()
	for {
		prune := d.pruneBlobs
		select {
		case <-ctx.Done():
			return nil
		case <-often.C:
		case <-seldom.C:
			prune = d.pruneOld
		}
		if err := prune(ctx); err != nil && ctx.Err() == nil {
			d.Log.ErrorContext(ctx, "not tidied", "err", err)
		}
	}
}

func (d *daemon) pruneOld(ctx context.Context) error {
	if err := d.store.DropOld(ctx); err != nil {
		return err
	}
	_, err := localStacks{d}.GC(ctx, StackGC{OlderThan: imageAge})
	return err
}

func (d *daemon) pruneBlobs(ctx context.Context) error {
	d.gcMu.Lock()
	defer d.gcMu.Unlock()
	keep := map[string]bool{}
	err := d.store.Read(ctx, func(tx *store.Tx) error { return tx.NamedBlobs(keep) })
	if err != nil {
		return err
	}
	if _, err := d.blobs.Prune(ctx, keep, blobGrace); err != nil {
		return err
	}
	return d.roots.Layers.Prune(ctx, func(digest string) bool { return keep[digest] })
}
