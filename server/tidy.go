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
func (h *house) tidy(ctx context.Context) error {
	often, seldom := time.NewTicker(blobInterval), time.NewTicker(tidyInterval)
	defer often.Stop()
	defer seldom.Stop()
	for {
		prune := h.pruneBlobs
		select {
		case <-ctx.Done():
			return nil
		case <-often.C:
		case <-seldom.C:
			prune = h.pruneOld
		}
		if err := prune(ctx); err != nil && ctx.Err() == nil {
			h.Log.ErrorContext(ctx, "not tidied", "err", err)
		}
	}
}

func (h *house) pruneOld(ctx context.Context) error {
	if err := h.store.DropOld(ctx); err != nil {
		return err
	}
	_, err := localStacks{h}.GC(ctx, StackGC{OlderThan: imageAge})
	return err
}

func (h *house) pruneBlobs(ctx context.Context) error {
	h.keeping.Lock()
	defer h.keeping.Unlock()
	keep := map[string]bool{}
	err := h.store.Read(ctx, func(tx *store.Tx) error { return tx.NamedBlobs(keep) })
	if err != nil {
		return err
	}
	if _, err := h.blobs.Prune(ctx, keep, blobGrace); err != nil {
		return err
	}
	return h.roots.Prune(ctx, func(digest string) bool { return keep[digest] })
}
