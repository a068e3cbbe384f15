// Package image is the cache of container images: it pulls them from registries and OCI layouts and keeps them by their
// digests until they are collected: whole, with the layers as they were moved, and each layer unpacked once for all images that
// have it above the same others.
package image

import (
	"context"
	"sync"
	"time"

	"cupola/rootfs/internal/keylock"
	"cupola/rootfs/internal/store"
	"cupola/rootfs/registry"
	"cupola/rootfs/tree"
)

// Dirs are the directories that the cache has in a store: of the images' records, of their blobs, and of their unpacked layers.
var Dirs = []string{"images", "oci", "chains"}

// Parts are what the cache needs of the parts of a store that are above it.
type Parts struct {
	Stacks func(digest string) []string // names of the stacks that are made of an image
	Sweep  func(context.Context) error  // called when images are collected
}

// Cache keeps images. Its methods may be called at the same time.
type Cache struct {
	store  *store.Store
	client *registry.Client
	parts  Parts
	locks  keylock.Locks

	mu      sync.Mutex           // of the records, and of what is published; taken before leases are
	claimed map[string]time.Time // images, by digest, that were pulled for a caller who will name them
}

// New opens the cache in a store, and removes what a crash left half unpacked.
func New(s *store.Store, registries registry.Config, parts Parts) (*Cache, error) {
	c := &Cache{store: s, client: registry.New(registries), parts: parts, claimed: map[string]time.Time{}}
	return c, tree.RemovePartial(s.Path("chains"), s.Trash)
}
