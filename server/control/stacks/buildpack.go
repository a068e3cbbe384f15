package stacks

import (
	"slices"

	"cupola/runtime/pattern"
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// BuildpackChange is a change of a buildpack.
type BuildpackChange struct {
	Name      change.Field[string] `json:"name"`
	Stack     change.Field[string] `json:"stack"`
	Position  change.Field[int]    `json:"position"`
	Enabled   change.Field[bool]   `json:"enabled"`
	Locked    change.Field[bool]   `json:"locked"`
	Lifecycle change.Field[string] `json:"lifecycle"` // only of a new one
	Metadata  *change.Metadata     `json:"metadata"`
}

var buildpackName = pattern.Lazy(`^[-\w]+$`)

// Validate lists what is wrong with the change, in Cloud Controller's words.
func (r BuildpackChange) Validate() []string {
	given := r.Name.Set && !r.Name.Null
	return control.Must(!given || buildpackName().MatchString(r.Name.V), "Name is invalid",
		len(r.Name.V) <= 250, "Name is too long (maximum is 250 characters)",
		len(r.Stack.V) <= 250, "Stack is too long (maximum is 250 characters)",
		!r.Position.Set || r.Position.Null || r.Position.V >= 1, "Position must be greater than or equal to 1",
		r.Lifecycle.Or("buildpack") == "buildpack" || r.Lifecycle.V == "cnb", `Lifecycle must be either "buildpack" or "cnb"`)
}

// CreateBuildpack adds a buildpack, which waits for its bits.
func CreateBuildpack(c *control.Session, req BuildpackChange) (*cf.Buildpack, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	if req.Name.V == "" {
		return nil, cf.Unprocessable("Name can't be blank, Name is invalid")
	}
	b := &cf.Buildpack{State: "AWAITING_UPLOAD", Lifecycle: req.Lifecycle.Or(cf.LifecycleBuildpack), Enabled: true}
	if err := saveBuildpack(c, b, req, store.Buildpacks.Insert); err != nil {
		return nil, err
	}
	if err := moveBuildpack(c.Tx, b, req.Position.Or(1)); err != nil {
		return nil, err
	}
	return b, buildpackEvent(c, "create", b, c.Request(c.Asked))
}

// UpdateBuildpack changes a buildpack.
func UpdateBuildpack(c *control.Session, b *cf.Buildpack, req BuildpackChange) error {
	if req.Lifecycle.Set {
		return cf.Unprocessable("Unknown field(s): 'lifecycle'")
	}
	if req.Stack.Set && req.Stack.V != b.Stack && b.Stack != "" {
		return cf.Unprocessable("Buildpack stack cannot be changed")
	}
	if err := saveBuildpack(c, b, req, store.Buildpacks.Update); err != nil {
		return err
	}
	if req.Position.Set {
		if err := moveBuildpack(c.Tx, b, req.Position.Or(b.Position)); err != nil {
			return err
		}
	}
	return buildpackEvent(c, "update", b, c.Request(c.Asked))
}

func saveBuildpack(c *control.Session, b *cf.Buildpack, req BuildpackChange, write func(*store.Tx, *cf.Buildpack) error) error {
	b.Name, b.Stack = req.Name.Or(b.Name), req.Stack.Or(b.Stack)
	b.Enabled, b.Locked = req.Enabled.Or(b.Enabled), req.Locked.Or(b.Locked)
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return err
	}
	if b.Stack != "" {
		if _, err := store.Stacks.First(c.Tx, store.Query{Where: map[string][]string{"names": {b.Stack}}}); err != nil {
			return control.Unprocessable(err, "Stack '%s' does not exist", b.Stack)
		}
	}
	err := write(c.Tx, b)
	switch {
	case !store.IsTaken(err):
		return err
	case b.Stack == "":
		return cf.Unprocessable("Buildpack with name '%s' and an unassigned stack already exists", b.Name)
	}
	return cf.Unprocessable("Buildpack with name '%s', stack '%s' and lifecycle '%s' already exists", b.Name, b.Stack, b.Lifecycle)
}

// DeleteBuildpack deletes a buildpack; the positions of the rest close up.
func DeleteBuildpack(c *control.Session, b *cf.Buildpack) error {
	if err := store.Buildpacks.Delete(c.Tx, b.GUID); err != nil {
		return err
	}
	rest, err := byPosition(c.Tx, b.Lifecycle)
	if err != nil {
		return err
	}
	if err := numberBuildpacks(c.Tx, rest); err != nil {
		return err
	}
	return buildpackEvent(c, "delete", b, nil)
}

// buildpackEvent records an event of a buildpack.
func buildpackEvent(c *control.Session, what string, b *cf.Buildpack, data audit.Data) error {
	return c.Audit(audit.Of("buildpack", what), audit.Target{Type: "buildpack", GUID: b.GUID, Name: b.Name}, data)
}

// byPosition lists the buildpacks of a lifecycle, each of which has positions of its own (CC:
// Buildpack's plugin list).
func byPosition(tx *store.Tx, lifecycle string) ([]*cf.Buildpack, error) {
	all, err := store.Buildpacks.Matching(tx, store.Query{Where: map[string][]string{"lifecycle": {lifecycle}}, Order: "position"})
	return all, err
}

// moveBuildpack puts a buildpack at a position, from 1; the others make room,
// and one beyond the last is the last.
func moveBuildpack(tx *store.Tx, b *cf.Buildpack, position int) error {
	all, err := byPosition(tx, b.Lifecycle)
	if err != nil {
		return err
	}
	order := control.Without(all, func(x *cf.Buildpack) bool { return x.GUID == b.GUID })
	order = slices.Insert(order, min(position-1, len(order)), b)
	return numberBuildpacks(tx, order)
}

// numberBuildpacks gives buildpacks the positions 1, 2, ….
func numberBuildpacks(tx *store.Tx, order []*cf.Buildpack) error {
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

// Bits are the uploaded bits of a buildpack.
type Bits struct {
	Filename, Digest string
	Stack            string // that its manifest.yml names; "" for none
	Fault            string // why its manifest.yml cannot be read; "" if it can
}

// Upload gives a buildpack its bits. One that was built in is the operator's own from
// now on. What does not suit the row is a fault of the upload, which is not an error.
func Upload(c *control.Session, b *cf.Buildpack, bits Bits) (fault *cf.Error, err error) {
	if bits.Fault != "" {
		return cf.Errorf(cf.BuildpackZipError, "Buildpack zip error: %s", bits.Fault), nil
	}
	if fault := unsuitable(c, b, bits.Stack); fault != nil {
		return fault, nil
	}
	b.Filename, b.Digest, b.State, b.System = bits.Filename, bits.Digest, "READY", ""
	if bits.Stack != "" {
		b.Stack = bits.Stack
	}
	if err := store.Buildpacks.Update(c.Tx, b); err != nil {
		return nil, err
	}
	return nil, buildpackEvent(c, "upload", b, c.Request(audit.Data{"bits_name": bits.Filename}))
}

// unsuitable tells why a stack that bits name is not one the buildpack can have.
func unsuitable(c *control.Session, b *cf.Buildpack, stack string) *cf.Error {
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
