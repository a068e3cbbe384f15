package seed

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lifecycle"
	"cupola/server/control/stacks"
	"cupola/server/datadir"
	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/blob"
)

// internalDomain is where apps find each other, as Cloud Foundry's deployments
// have it.
const internalDomain = "apps.internal"

// Seeds are the rows that a daemon sees to.
type Seeds struct {
	Store    *store.Store
	Blobs    *blob.Store
	Stacks   func() []stacks.System
	DataDir  string
	Domain   string // of apps
	Password string // of the admin; "" for the one before, or a new one
	Log      *slog.Logger

	late bool // the rows still have to be brought up to what this daemon offers

	mu   sync.Mutex
	hash string // of the admin's password, once it is known
}

// Begin begins with what takes Open long and needs nothing but the store: to compare the
// admin's password with its hash. Open waits for it.
func (s *Seeds) Begin(ctx context.Context) {
	fault.Go("seed", func() { _, _ = s.adminHash(ctx) }) // Open tries again
}

func (s *Seeds) adminHash(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hash != "" {
		return s.hash, nil
	}
	password, err := s.password()
	if err != nil {
		return "", err
	}
	s.hash, err = uaa.AdminHash(ctx, s.Store, password)
	return s.hash, err
}

// Open makes them. A disk without room puts that off where an earlier daemon has
// made the rows: what runs is led to and adopted all the same.
func (s *Seeds) Open(ctx context.Context) error {
	err := s.seed(ctx)
	if err == nil || !datadir.IsDiskFault(err) || !s.seeded(ctx) {
		return err
	}
	s.Log.ErrorContext(ctx, "the data directory's disk is full, or cannot be written: the daemon serves what there is, and most changes are refused. Free space on it", "data_dir", s.DataDir, "err", err)
	s.late = true
	return nil
}

// seeded reports whether a daemon has started on the data directory before: all
// seeds are one transaction.
func (s *Seeds) seeded(ctx context.Context) bool {
	return s.Store.Read(ctx, func(tx *store.Tx) error {
		_, err := store.Users.First(tx, store.Query{Where: map[string][]string{"usernames": {"admin"}, "origins": {uaa.Origin}}})
		return err
	}) == nil
}

// interval is how often seeding is tried again that was put off.
const interval = 30 * time.Second

// Run seeds once there is room again.
func (s *Seeds) Run(ctx context.Context) error {
	if !s.late {
		return nil
	}
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		err := s.seed(ctx)
		if err == nil {
			s.Log.InfoContext(ctx, "the data directory's disk has room again")
			return nil
		}
		if !datadir.IsDiskFault(err) {
			s.Log.ErrorContext(ctx, "rows not brought up to what this daemon offers", "err", err)
		}
	}
}

// seed brings the rows up to what this daemon and machine offer: stacks,
// system buildpacks, Cloud Foundry's default security groups, the domain, the
// admin. At the first start it also makes an org and a space.
func (s *Seeds) seed(ctx context.Context) error {
	hash, err := s.adminHash(ctx)
	if err != nil {
		return err
	}
	buildpacks, err := s.systemBuildpacks(ctx)
	if err != nil {
		return err
	}
	return s.Store.Write(ctx, func(tx *store.Tx) error {
		for _, step := range []func(*store.Tx) error{
			func(tx *store.Tx) error { return uaa.EnsureAdmin(tx, hash) },
			func(tx *store.Tx) error { return stacks.Offer(tx, s.Stacks()) },
			func(tx *store.Tx) error { return stacks.OfferBuildpacks(tx, buildpacks) },
			SecurityGroups, Quota, s.domains, firstPlace,
		} {
			if err := step(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Seeds) systemBuildpacks(ctx context.Context) (out []stacks.SystemBuildpack, err error) {
	for _, b := range lifecycle.Buildpacks() {
		kept, err := s.Blobs.Ensure(ctx, b.Zip)
		if err != nil {
			return nil, err
		}
		out = append(out, stacks.SystemBuildpack{Name: b.Name, Filename: b.Filename, Digest: kept.Digest})
	}
	return out, nil
}
