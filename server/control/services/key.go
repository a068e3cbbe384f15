package services

import (
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

// createKey adds a key, which the broker makes in a job.
func createKey(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance, req NewBinding) error {
	space, err := c.InSpace(i.SpaceGUID)
	if err != nil {
		return err
	}
	if !c.MayDevelop(space) {
		return access.NotAuthorized()
	}
	if i.Type != cf.Managed {
		return cf.Unprocessable("Service credential bindings of type 'key' are not supported for user-provided service instances.")
	}
	if err := bindable(c, i, "."); err != nil {
		return err
	}
	if err := keyFree(c, i, req.Name.V); err != nil {
		return err
	}
	b.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return err
	}
	return quota.Within(c, space.GUID, quota.Services, func() error { return store.ServiceBindings.Insert(c.Tx, b) })
}

// keyFree refuses a key whose name another of the instance has. One that could
// not be made is replaced.
func keyFree(c *control.Session, i *cf.ServiceInstance, name string) error {
	const taken = "The binding name is invalid. Key binding names must be unique. The service instance already has a key binding with "
	if len(name) > 255 {
		return cf.Unprocessable("name max_length")
	}
	old, err := store.ServiceBindings.First(c.Tx, store.Query{Where: map[string][]string{"service_instance_guids": {i.GUID}, "type": {cf.BindingKey}, "names": {name}}})
	switch {
	case store.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case old.LastOperation.Is(cf.OpCreate, cf.OpFailed):
		return ReplaceBinding(c, old, i)
	case old.LastOperation.Type == cf.OpCreate:
		return cf.Unprocessable(taken+"name '%s'.", name)
	}
	return cf.Unprocessable(taken+"the name '%s' that is getting deleted or its deletion failed.", name)
}
