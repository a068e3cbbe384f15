package server

import (
	"context"
	"io/fs"
	"time"

	"cupola/store"
)

// How often what nobody needs any longer is thrown away, and how old a blob
// must be: an upload names its blobs when it ends.
const (
	tidyInterval = 10 * time.Minute
	blobGrace    = time.Hour
	imageAge     = 7 * 24 * time.Hour // since the last use
)

// tidy throws away old rows, and blobs, unpacked layers and images that no row names,
// until ctx ends.
func (h *house) tidy(ctx context.Context) error {
	t := time.NewTicker(tidyInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if err := h.prune(ctx); err != nil && ctx.Err() == nil {
				h.Log.ErrorContext(ctx, "not tidied", "err", err)
			}
		}
	}
}

func (h *house) prune(ctx context.Context) error {
	if err := h.store.DropOld(ctx); err != nil {
		return err
	}
	if err := h.pruneBlobs(ctx); err != nil {
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
	if _, err := h.blobs.Prune(ctx, keep, func(i fs.FileInfo) bool { return time.Since(i.ModTime()) > blobGrace }); err != nil {
		return err
	}
	return h.roots.Prune(ctx, func(digest string) bool { return keep[digest] })
}
