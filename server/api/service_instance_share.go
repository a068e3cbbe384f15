package api

import (
	"time"

	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

func viewSharedSpaces(c *call, i *cf.ServiceInstance) doc {
	d := toMany(i.SharedSpaces)
	d["links"] = doc{"self": c.link("/v3/service_instances/%s/relationships/shared_spaces", i.GUID)}
	return d
}

// ownServiceInstance finds the service instance of {guid}, if the actor sees the space
// that it is in. A user who sees only a space that it is shared with may not see the others.
func ownServiceInstance(c *call) (*cf.ServiceInstance, error) {
	i, err := store.ServiceInstances.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	_, err = store.Spaces.Visible(c.Tx, i.SpaceGUID, c.Scope)
	if store.IsNotFound(err) {
		err = cf.Errorf(cf.ResourceNotFound, "Service instance not found")
	}
	return i, err
}

func showSharedSpaces(c *call) (*response, error) {
	q, err := fieldsQuery(c, noRows{}, sharedFields)
	if err != nil {
		return nil, err
	}
	i, err := ownServiceInstance(c)
	if err != nil {
		return nil, err
	}
	d := viewSharedSpaces(c, i)
	return &response{body: d}, includeSpaceFields(c, d, q.fields, i.SharedSpaces)
}

// showSharesUse counts, for each space that a service instance is shared with,
// the apps that are bound there.
func showSharesUse(c *call) (*response, error) {
	i, err := ownServiceInstance(c)
	if err != nil {
		return nil, err
	}
	bound, err := services.AppBindings(c.Session, i)
	if err != nil {
		return nil, err
	}
	n := map[string]int{}
	for _, b := range bound {
		n[b.Space]++
	}
	use := []doc{}
	for _, space := range i.SharedSpaces {
		use = append(use, doc{"space": doc{"guid": space}, "bound_app_count": n[space]})
	}
	self := "/v3/service_instances/" + i.GUID
	return ok(doc{"usage_summary": use, "links": doc{
		"self":             c.link("%s/relationships/shared_spaces/usage_summary", self),
		"shared_spaces":    c.link("%s/relationships/shared_spaces", self),
		"service_instance": c.link("%s", self)}})
}

// findToShare is the service instance of {guid} for one who may share it.
func findToShare(c *call) (*cf.ServiceInstance, error) {
	if err := c.Feature("service_instance_sharing"); err != nil {
		return nil, err
	}
	return findInstance(c)
}

// unshareFor is how long it is waited for brokers to delete the bindings of an
// instance that is taken out of a space.
const unshareFor = 60 * time.Second

// unshareServiceInstance takes an instance out of a space that it is shared
// with. First the bindings of the apps there are deleted, which the answer waits
// for.
func unshareServiceInstance(c *call) (*response, error) {
	defer c.noteReads()()
	deadline := time.Now().Add(unshareFor)
	u, done := services.Unsharing{}, false
	for {
		_, err := inTx(func(c *call) (*response, error) {
			i, err := findInstance(c)
			if err == nil {
				done, err = u.Step(c.Session, i, c.param("space"))
			}
			return nil, err
		})(c)
		switch {
		case err != nil:
			return nil, err
		case done:
			return noContent()
		case !u.Waits() || !c.wait(c.reads.Stale(), deadline):
			return nil, u.Fault()
		}
	}
}
