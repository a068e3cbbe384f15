package server

import (
	"bytes"
	"context"

	"cupola/runtime/lifecycle"
	"cupola/server/api"
	"cupola/server/databroker"
	"cupola/server/uaa"
	"cupola/store"
)

// internalDomain is where apps find each other, as Cloud Foundry's deployments
// have it.
const internalDomain = "apps.internal"

// seed brings the rows up to what this daemon and machine offer: stacks,
// system buildpacks, Cloud Foundry's default security groups, the domain, the
// admin. At the first start it also makes an org and a space.
func (h *house) seed(ctx context.Context) error {
	password, err := h.adminPassword()
	if err != nil {
		return err
	}
	buildpacks, err := h.systemBuildpacks(ctx)
	if err != nil {
		return err
	}
	return h.store.Write(ctx, func(tx *store.Tx) error {
		for _, step := range []func() error{
			func() error { return uaa.EnsureAdmin(tx, password) },
			func() error { return api.SeedStacks(tx, h.systemStacks()) },
			func() error { return api.SeedBuildpacks(tx, buildpacks) },
			func() error { return api.SeedSecurityGroups(tx) },
			func() error { return api.SeedQuota(tx) },
			func() error { return sharedDomain(tx, h.Domain, false) },
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

func (h *house) systemBuildpacks(ctx context.Context) (out []api.SystemBuildpack, err error) {
	for _, b := range lifecycle.Buildpacks() {
		kept, err := h.blobs.Put(ctx, bytes.NewReader(b.Zip))
		if err != nil {
			return nil, err
		}
		out = append(out, api.SystemBuildpack{Name: b.Name, Filename: b.Filename, Digest: kept.Digest})
	}
	return out, nil
}

func (h *house) systemStacks() (out []api.SystemStack) {
	name, _ := h.roots.Default(h.DefaultStack)
	for _, s := range h.roots.Stacks() {
		if s.Name == databroker.Stack {
			continue // no app is to run on it
		}
		out = append(out, api.SystemStack{Name: s.Name, Description: s.Description, Compat: s.Compat, Default: s.Name == name})
	}
	for _, alias := range h.aliases() {
		s, _ := h.roots.Stack(alias.of)
		out = append(out, api.SystemStack{Name: alias.name, Description: s.Description, Compat: s.Compat})
	}
	return out
}
