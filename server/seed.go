package server

import (
	"context"
	"time"

	"cupola/runtime/lifecycle"
	"cupola/server/api"
	"cupola/server/datadir"
	"cupola/server/uaa"
	"cupola/store"
)

// internalDomain is where apps find each other, as Cloud Foundry's deployments
// have it.
const internalDomain = "apps.internal"

// openSeeds is seed, which a disk without room puts off where an earlier daemon
// has made the rows: what runs is led to and adopted all the same.
func (d *daemon) openSeeds(ctx context.Context) error {
	err := d.seed(ctx)
	if err == nil || !datadir.IsDiskFault(err) || !d.seeded(ctx) {
		return err
	}
	d.Log.ErrorContext(ctx, "the data directory's disk is full, or cannot be written: the daemon serves what there is, and most changes are refused. Free space on it", "data_dir", d.DataDir, "err", err)
	d.unseeded = true
	return nil
}

// seeded reports whether a daemon has started on the data directory before: all
// seeds are one transaction.
func (d *daemon) seeded(ctx context.Context) bool {
	return d.store.Read(ctx, func(tx *store.Tx) error {
		_, err := store.Users.First(tx, store.Query{Where: map[string][]string{"usernames": {"admin"}, "origins": {uaa.Origin}}})
		return err
	}) == nil
}

// seedInterval is how often seeding is tried again that was put off.
const seedInterval = 30 * time.Second

// seedLater seeds once there is room again.
func (d *daemon) seedLater(ctx context.Context) error {
	if !d.unseeded {
		return nil
	}
	t := time.NewTicker(seedInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		err := d.seed(ctx)
		if err == nil {
			d.Log.InfoContext(ctx, "the data directory's disk has room again")
			return nil
		}
		if !datadir.IsDiskFault(err) {
			d.Log.ErrorContext(ctx, "rows not brought up to what this daemon offers", "err", err)
		}
	}
}

// seed brings the rows up to what this daemon and machine offer: stacks,
// system buildpacks, Cloud Foundry's default security groups, the domain, the
// admin. At the first start it also makes an org and a space.
func (d *daemon) seed(ctx context.Context) error {
	password, err := d.adminPassword()
	if err != nil {
		return err
	}
	buildpacks, err := d.systemBuildpacks(ctx)
	if err != nil {
		return err
	}
	return d.store.Write(ctx, func(tx *store.Tx) error {
		for _, step := range []func() error{
			func() error { return uaa.EnsureAdmin(tx, password) },
			func() error { return api.SeedStacks(tx, d.stacks.Rows()) },
			func() error { return api.SeedBuildpacks(tx, buildpacks) },
			func() error { return api.SeedSecurityGroups(tx) },
			func() error { return api.SeedQuota(tx) },
			func() error { return sharedDomain(tx, d.Domain, false) },
			func() error { return sharedDomain(tx, internalDomain, true) },
			func() error { return firstPlace(tx) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *daemon) systemBuildpacks(ctx context.Context) (out []api.SystemBuildpack, err error) {
	for _, b := range lifecycle.Buildpacks() {
		kept, err := d.blobs.Ensure(ctx, b.Zip)
		if err != nil {
			return nil, err
		}
		out = append(out, api.SystemBuildpack{Name: b.Name, Filename: b.Filename, Digest: kept.Digest})
	}
	return out, nil
}
