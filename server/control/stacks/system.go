package stacks

import (
	"fmt"
	"slices"

	"cupola/store"
	"cupola/store/cf"
)

// System is a stack that the daemon found.
type System struct {
	Name        string
	Description string
	Compat      string // what CF_STACK says; "": the name
	Default     bool   // for new apps; of one at most
}

// Offer makes the stacks that the daemon found, or brings them up to date. An
// operator's state and metadata stay. When one of them is the default, no other
// stack is.
func Offer(tx *store.Tx, found []System) error {
	if slices.ContainsFunc(found, func(s System) bool { return s.Default }) {
		if err := clearDefault(tx); err != nil {
			return err
		}
	}
	for _, f := range found {
		s, err := store.Stacks.First(tx, store.Query{Where: map[string][]string{"names": {f.Name}}})
		if store.IsNotFound(err) {
			s, err = &cf.Stack{Name: f.Name, State: "ACTIVE"}, nil
		}
		if err != nil {
			return err
		}
		s.Description, s.Compat, s.Default = f.Description, f.Compat, f.Default
		if err := store.Stacks.Put(tx, s); err != nil {
			return err
		}
	}
	return nil
}

func clearDefault(tx *store.Tx) error {
	old, err := store.Stacks.By(tx, "default", "true")
	if err != nil {
		return err
	}
	for _, s := range old {
		s.Default = false
		if err := store.Stacks.Update(tx, s); err != nil {
			return err
		}
	}
	return nil
}

// SystemBuildpack is a buildpack that comes with the daemon.
type SystemBuildpack struct {
	Name     string
	Filename string // "go_buildpack.zip"
	Digest   string // of its zip in the blob store
}

// OfferBuildpacks makes the buildpacks that come with the daemon, in their order:
// a new one comes before the next that is there, or else last. One that is there
// gets the new bits and keeps its position, and whether it is enabled and locked;
// one to which an operator uploaded other bits stays as it is.
func OfferBuildpacks(tx *store.Tx, system []SystemBuildpack) error {
	for i, s := range system {
		if err := offerBuildpack(tx, s, system[i+1:]); err != nil {
			return fmt.Errorf("seed the buildpack %s: %w", s.Name, err)
		}
	}
	return nil
}

func offerBuildpack(tx *store.Tx, s SystemBuildpack, later []SystemBuildpack) error {
	all, err := byPosition(tx, cf.LifecycleBuildpack)
	if err != nil {
		return err
	}
	have := 0
	for _, b := range all {
		if b.Name != s.Name {
			continue
		}
		have++
		if b.System == s.Name && (b.Digest != s.Digest || b.Filename != s.Filename) {
			b.Digest, b.Filename, b.State = s.Digest, s.Filename, "READY"
			return store.Buildpacks.Update(tx, b)
		}
	}
	if have > 0 {
		return nil
	}
	b := &cf.Buildpack{Name: s.Name, State: "READY", Position: len(all) + 1, Enabled: true,
		Lifecycle: "buildpack", Filename: s.Filename, Digest: s.Digest, System: s.Name}
	if err := store.Buildpacks.Insert(tx, b); err != nil {
		return err
	}
	for _, l := range later {
		if i := slices.IndexFunc(all, func(x *cf.Buildpack) bool { return x.System == l.Name }); i >= 0 {
			return moveBuildpack(tx, b, i+1)
		}
	}
	return nil
}
