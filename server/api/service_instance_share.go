package api

import (
	"slices"

	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

func viewSharedSpaces(c *call, i *cf.ServiceInstance) doc {
	d := toMany(i.SharedSpaces)
	d["links"] = doc{"self": c.link("/v3/service_instances/%s/relationships/shared_spaces", i.GUID)}
	return d
}

// ownServiceInstance is the service instance of {guid}, if the actor sees the
// space that it is in: those that it is shared with are nobody else's concern.
func (c *call) ownServiceInstance() (*cf.ServiceInstance, error) {
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
	q, err := parseQuery(c.Request.URL.Query(), noRows{}, "fields")
	if err != nil {
		return nil, err
	}
	if err := checkFields(q.fields, sharedFields); err != nil {
		return nil, err
	}
	i, err := c.ownServiceInstance()
	if err != nil {
		return nil, err
	}
	d := viewSharedSpaces(c, i)
	return &response{body: d}, c.includeSpaceFields(d, q.fields, i.SharedSpaces)
}

// showSharesUse counts, for each space that a service instance is shared with,
// the apps that are bound there.
func showSharesUse(c *call) (*response, error) {
	i, err := c.ownServiceInstance()
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

func shareServiceInstance(c *call) (*response, error) {
	var req refs
	if err := c.Feature("service_instance_sharing"); err != nil {
		return nil, err
	}
	i, err := c.serviceInstance()
	if err != nil {
		return nil, err
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if len(req.Data) == 0 {
		return nil, cf.Unprocessable("Data can't be blank")
	}
	spaces, err := services.SpacesToShareWith(c.Session, i, req.guids())
	if err != nil {
		return nil, err
	}
	if err := services.Shareable(c.Session, i, spaces); err != nil {
		return nil, err
	}
	for _, s := range spaces {
		if !slices.Contains(i.SharedSpaces, s.GUID) {
			i.SharedSpaces = append(i.SharedSpaces, s.GUID)
		}
	}
	if err := store.ServiceInstances.Update(c.Tx, i); err != nil {
		return nil, err
	}
	return &response{body: viewSharedSpaces(c, i)}, services.ShareEvent(c.Session, "share", i, doc{"target_space_guids": req.guids()})
}
