package acme

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/certmagic"

	"cupola/store"
)

// storage is certmagic's storage in the store. Its locks are in memory, since one
// process has a data directory.
type storage struct {
	store *store.Store

	mu    sync.Mutex
	locks map[string]chan struct{} // closed by Unlock
}

func newStorage(s *store.Store) *storage {
	return &storage{store: s, locks: map[string]chan struct{}{}}
}

// Lock waits for a lock.
func (s *storage) Lock(ctx context.Context, name string) error {
	for {
		s.mu.Lock()
		held := s.locks[name]
		if held == nil {
			s.locks[name] = make(chan struct{})
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Unlock releases a lock.
func (s *storage) Unlock(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.locks[name]; held != nil {
		close(held)
		delete(s.locks, name)
	}
	return nil
}

// Store keeps a value.
func (s *storage) Store(ctx context.Context, key string, value []byte) error {
	return s.store.Write(ctx, func(tx *store.Tx) error { return store.ACMEFiles.Put(tx, key, value) })
}

// Load returns a value.
func (s *storage) Load(ctx context.Context, key string) (value []byte, err error) {
	err = s.store.Read(ctx, func(tx *store.Tx) (err error) {
		value, _, err = store.ACMEFiles.Get(tx, key)
		return err
	})
	return value, err
}

// Delete removes a key and all below it.
func (s *storage) Delete(ctx context.Context, key string) error {
	return s.store.Write(ctx, func(tx *store.Tx) error { return store.ACMEFiles.Delete(tx, key) })
}

// Exists reports whether there is a value, or a folder.
func (s *storage) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return err == nil
}

// List lists the keys below a folder; without recursive, the names right in it.
func (s *storage) List(ctx context.Context, folder string, recursive bool) (keys []string, err error) {
	err = s.store.Read(ctx, func(tx *store.Tx) (err error) {
		keys, err = store.ACMEFiles.Below(tx, folder)
		return err
	})
	if recursive || err != nil {
		return keys, err
	}
	folder = strings.Trim(folder, "/")
	for n, key := range keys {
		name, _, _ := strings.Cut(strings.Trim(strings.TrimPrefix(key, folder), "/"), "/")
		keys[n] = path.Join(folder, name)
	}
	return slices.Compact(keys), nil
}

// Stat tells about a value or a folder.
func (s *storage) Stat(ctx context.Context, key string) (info certmagic.KeyInfo, err error) {
	err = s.store.Read(ctx, func(tx *store.Tx) error {
		value, modified, err := store.ACMEFiles.Get(tx, key)
		if err == nil {
			info = certmagic.KeyInfo{Key: key, Modified: modified, Size: int64(len(value)), IsTerminal: true}
			return nil
		}
		below, ferr := store.ACMEFiles.Below(tx, key)
		if ferr != nil || len(below) == 0 {
			return err
		}
		info = certmagic.KeyInfo{Key: key}
		return nil
	})
	return info, err
}
