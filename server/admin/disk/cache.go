package disk

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"cupola/rootfs/tree"
	"cupola/store"
)

// The caches, as people call them. They are also the names of areas.
const (
	images     = "images"
	unpacked   = "unpacked droplets"
	packed     = "images to push"
	buildCache = store.BuildCacheBlobs
)

// cache is what can be made or fetched again.
type cache struct {
	name   string
	cost   string // of deleting it
	unused func(context.Context) ([]tree.Unused, error)
	remove func(ctx context.Context, names []string) error // what is used by now stays
}

func (k *Keeper) caches() []cache {
	roots := k.Stacks.Roots
	return []cache{
		{buildCache, "the next stagings take longer", k.unusedBuildCaches, k.removeBuildCaches},
		{images, "pulled again when an app names them", k.Stacks.UnusedImages, k.Stacks.RemoveImages},
		{unpacked, "unpacked again when an instance starts", roots.Layers.Unused, roots.Layers.Remove},
		{packed, "made again when they are asked for", roots.Packed.Unused, roots.Packed.Remove},
	}
}

// cacheGrace is how long a build cache stays after it was made: something may be about
// to name a blob of the same content.
const cacheGrace = time.Minute

// unusedBuildCaches lists the blobs that are nothing but build caches. The next staging
// of their app uses them if they are there.
func (k *Keeper) unusedBuildCaches(ctx context.Context) (all []tree.Unused, err error) {
	kinds, err := k.kinds(ctx)
	if err != nil {
		return nil, err
	}
	other := map[string]bool{}
	for _, kind := range kinds {
		for _, digest := range kind.Digests {
			other[digest] = other[digest] || kind.Name != buildCache
		}
	}
	for digest, needed := range other {
		info, err := k.Blobs.Stat(digest)
		if needed || errors.Is(err, fs.ErrNotExist) || err == nil && time.Since(info.ModTime()) < cacheGrace {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, tree.Unused{Name: digest, Bytes: tree.Allocated(info), Used: info.ModTime()})
	}
	return all, nil
}

// removeBuildCaches deletes the rows before the blobs. Blobs that a crash in between
// leaves are deleted as others that no row names.
func (k *Keeper) removeBuildCaches(ctx context.Context, digests []string) error {
	k.Stacks.GC.Lock()
	defer k.Stacks.GC.Unlock()
	if err := k.Stacks.Store.Write(ctx, func(tx *store.Tx) error {
		for _, digest := range digests {
			if err := store.BuildCaches.Drop(tx, digest); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	named := map[string]bool{}
	if err := k.Stacks.Store.Read(ctx, func(tx *store.Tx) error { return tx.NamedBlobs(named) }); err != nil {
		return err
	}
	for _, digest := range digests {
		if named[digest] {
			continue
		}
		if _, err := k.Blobs.Remove(digest, cacheGrace); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keeper) kinds(ctx context.Context) (all []store.BlobKind, err error) {
	err = k.Stacks.Store.Read(ctx, func(tx *store.Tx) (err error) { all, err = tx.BlobKinds(); return err })
	return all, err
}
