package services

import (
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// Unsharing is how far an instance has been taken out of a space. First the
// bindings of the apps there are deleted.
type Unsharing struct {
	begun  []string // bindings that the broker was asked to delete
	failed []string // why some were not deleted
	left   []string // those that are being deleted
}

// Step takes the instance out of the space, and reports so, if no app there is
// bound to it any longer.
func (u *Unsharing) Step(c *control.Session, i *cf.ServiceInstance, spaceGUID string) (done bool, err error) {
	space, err := store.Spaces.Get(c.Tx, spaceGUID)
	if err != nil {
		return false, control.Unprocessable(err, "Unable to unshare service instance from space %s. Ensure the space exists.", spaceGUID)
	}
	if !slices.Contains(i.SharedSpaces, space.GUID) {
		return true, nil // as Cloud Controller; what is bound in the instance's own space stays bound
	}
	bound, err := AppBindings(c, i)
	if err != nil {
		return false, err
	}
	u.failed, u.left = nil, nil
	for _, b := range bound {
		if b.Space != space.GUID {
			continue
		}
		if err := u.unbind(c, b.ServiceBinding, i, space); err != nil {
			return false, err
		}
	}
	if len(u.failed)+len(u.left) > 0 {
		return false, nil
	}
	return true, Unshare(c, i, space.GUID)
}

// unbind makes the broker delete a binding, once.
func (u *Unsharing) unbind(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance, space *cf.Space) error {
	op, begun := b.LastOperation, slices.Contains(u.begun, b.GUID)
	switch {
	case begun && op.Is(cf.OpDelete, cf.OpFailed):
		u.failed = append(u.failed, op.Description)
		return nil
	case !begun && BindingIdle(op, i) == nil:
		u.begun = append(u.begun, b.GUID)
		if _, err := Unbind(c, b); err != nil {
			return err
		}
	}
	u.left = append(u.left, "The binding between an application and service instance "+i.Name+" in space "+space.Name+" is being deleted asynchronously.")
	return nil
}

// Waits reports whether a broker is still deleting bindings.
func (u *Unsharing) Waits() bool { return len(u.left) > 0 }

// Fault is why the instance is still in the space.
func (u *Unsharing) Fault() error {
	return cf.Errorf(cf.ServiceUnshareFailed, "Unshare of service instance failed: \n\nUnshare of service instance failed because one or more bindings could not be deleted.\n\n \t%s",
		strings.Join(append(u.failed, u.left...), "\n\n\t"))
}
