package stacks

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// InsertBuildpack adds a buildpack at a position, from 1.
func InsertBuildpack(c *control.Session, b *cf.Buildpack, position int) error {
	if err := buildpackStack(c, b.Stack); err != nil {
		return err
	}
	if err := store.Buildpacks.Insert(c.Tx, b); err != nil {
		return buildpackTaken(b, err)
	}
	if err := MoveBuildpack(c.Tx, b, position); err != nil {
		return err
	}
	return BuildpackEvent(c, "create", b)
}

func buildpackStack(c *control.Session, name string) error {
	if name == "" {
		return nil
	}
	_, err := store.Stacks.First(c.Tx, store.Query{Where: map[string][]string{"names": {name}}})
	return control.Unprocessable(err, "Stack '%s' does not exist", name)
}

// buildpackTaken says in Cloud Controller's words that there is such a
// buildpack.
func buildpackTaken(b *cf.Buildpack, err error) error {
	switch {
	case !store.IsTaken(err):
		return err
	case b.Stack == "":
		return cf.Unprocessable("Buildpack with name '%s' and an unassigned stack already exists", b.Name)
	}
	return cf.Unprocessable("Buildpack with name '%s', stack '%s' and lifecycle '%s' already exists", b.Name, b.Stack, b.Lifecycle)
}

// BuildpackEvent records an event of a buildpack.
func BuildpackEvent(c *control.Session, what string, b *cf.Buildpack) error {
	return c.Audit(audit.Of("buildpack", what), audit.Target{Type: "buildpack", GUID: b.GUID, Name: b.Name}, nil)
}

// MoveBuildpack puts a buildpack at a position, from 1; the others make room,
// and one beyond the last is the last.
func MoveBuildpack(tx *store.Tx, b *cf.Buildpack, position int) error {
	all, _, err := store.Buildpacks.List(tx, store.Query{Order: "position"})
	if err != nil {
		return err
	}
	order := control.Without(all, func(x *cf.Buildpack) bool { return x.GUID == b.GUID })
	order = slices.Insert(order, min(position-1, len(order)), b)
	return NumberBuildpacks(tx, order)
}

// NumberBuildpacks gives buildpacks the positions 1, 2, ….
func NumberBuildpacks(tx *store.Tx, order []*cf.Buildpack) error {
	for i, b := range order {
		if b.Position == i+1 {
			continue
		}
		b.Position = i + 1
		if err := store.Buildpacks.Update(tx, b); err != nil {
			return err
		}
	}
	return nil
}

// SaveBuildpack writes a buildpack that was changed.
func SaveBuildpack(c *control.Session, b *cf.Buildpack) error {
	if err := buildpackStack(c, b.Stack); err != nil {
		return err
	}
	return buildpackTaken(b, store.Buildpacks.Update(c.Tx, b))
}

// Suits tells why a stack that bits name is not one the buildpack can have.
func Suits(c *control.Session, b *cf.Buildpack, stack string) *cf.Error {
	if stack == "" || stack == b.Stack {
		return nil
	}
	if b.Stack != "" {
		return cf.Errorf(cf.BuildpackStacksDiffer, "Uploaded buildpack stack (%s) does not match %s", stack, b.Stack)
	}
	if _, err := apps.StackNamed(c, stack); err != nil {
		return cf.Errorf(cf.BuildpackStackUnknown, "Uploaded buildpack stack (%s) does not exist", stack)
	}
	same := store.Query{Where: map[string][]string{"names": {b.Name}, "stacks": {stack}, "lifecycle": {b.Lifecycle}}}
	if n, err := store.Buildpacks.Count(c.Tx, same); err != nil || n > 0 {
		return cf.Errorf(cf.BuildpackNameTaken, "The buildpack name %s is already in use for the stack %s and the lifecycle %s", b.Name, stack, b.Lifecycle)
	}
	return nil
}
