package api

import (
	"slices"
	"strings"
	"time"

	"cupola/server/control"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// unshareFor is how long it is waited for brokers to delete the bindings of an
// instance that is taken out of a space.
const unshareFor = 60 * time.Second

// unsharing is how far an instance has been taken out of a space.
type unsharing struct {
	begun  map[string]bool // bindings that the broker was asked to delete
	failed []string        // why some were not deleted
	left   []string        // those that are being deleted
}

// unshareServiceInstance takes an instance out of a space that it is shared
// with. First the bindings of the apps there are deleted, which the answer waits
// for.
func unshareServiceInstance(c *call) (*response, error) {
	changed, stop := c.s.Store.Watch(store.ServiceBindings.Name())
	defer stop()
	deadline := time.Now().Add(unshareFor)
	u := unsharing{begun: map[string]bool{}}
	for {
		res, err := inTx(u.step)(c)
		if err != nil || res != nil {
			return res, err
		}
		if len(u.left) == 0 || !c.wait(changed, deadline) {
			return nil, cf.Errorf(cf.ServiceUnshareFailed, "Unshare of service instance failed: \n\nUnshare of service instance failed because one or more bindings could not be deleted.\n\n \t%s",
				strings.Join(append(u.failed, u.left...), "\n\n\t"))
		}
	}
}

// step takes the instance out of the space if no app there is bound to it any
// longer.
func (u *unsharing) step(c *call) (*response, error) {
	i, err := c.serviceInstance()
	if err != nil {
		return nil, err
	}
	space, err := store.Spaces.Get(c.Tx, c.param("space"))
	if err != nil {
		return nil, control.Unprocessable(err, "Unable to unshare service instance from space %s. Ensure the space exists.", c.param("space"))
	}
	if !slices.Contains(i.SharedSpaces, space.GUID) {
		return noContent() // as Cloud Controller; what is bound in the instance's own space stays bound
	}
	bound, err := services.AppBindings(c.Session, i)
	if err != nil {
		return nil, err
	}
	u.failed, u.left = nil, nil
	for _, b := range bound {
		if b.Space != space.GUID {
			continue
		}
		if err := u.unbind(c, b.ServiceBinding, i, space); err != nil {
			return nil, err
		}
	}
	if len(u.failed)+len(u.left) > 0 {
		return nil, nil
	}
	if err := services.Unshare(c.Session, i, space.GUID); err != nil {
		return nil, err
	}
	return noContent()
}

// unbind has the broker delete a binding, once.
func (u *unsharing) unbind(c *call, b *cf.ServiceBinding, i *cf.ServiceInstance, space *cf.Space) error {
	switch op := b.LastOperation; {
	case u.begun[b.GUID] && op.Is(cf.OpDelete, cf.OpFailed):
		u.failed = append(u.failed, op.Description)
		return nil
	case u.begun[b.GUID] || services.BindingIdle(op, i) != nil:
	default:
		u.begun[b.GUID] = true
		j, err := services.Unbind(c.Session, b)
		if err != nil {
			return err
		}
		if err := store.Jobs.Insert(c.Tx, j); err != nil {
			return err
		}
	}
	u.left = append(u.left, "The binding between an application and service instance "+i.Name+" in space "+space.Name+" is being deleted asynchronously.")
	return nil
}
