package api

import (
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
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
	bound, err := c.appBindingsOf(i)
	if err != nil {
		return nil, err
	}
	n := map[string]int{}
	for _, b := range bound {
		n[b.space]++
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

// placedBinding is an app's binding, and the app's space.
type placedBinding struct {
	*cf.ServiceBinding
	space string
}

func (c *call) appBindingsOf(i *cf.ServiceInstance) ([]placedBinding, error) {
	rows, _, err := store.ServiceBindings.List(c.Tx, store.Query{Where: map[string][]string{"service_instance_guids": {i.GUID}, "type": {cf.BindingApp}}})
	if err != nil {
		return nil, err
	}
	apps, err := store.Apps.By(c.Tx, "guids", control.GUIDs(rows, func(b *cf.ServiceBinding) string { return b.AppGUID })...)
	space := map[string]string{}
	for _, a := range apps {
		space[a.GUID] = a.SpaceGUID
	}
	var list []placedBinding
	for _, b := range rows {
		list = append(list, placedBinding{b, space[b.AppGUID]})
	}
	return list, err
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
	spaces, err := c.spacesToShareWith(i, req.guids())
	if err != nil {
		return nil, err
	}
	if err := c.serviceShareable(i, spaces); err != nil {
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
	return &response{body: viewSharedSpaces(c, i)}, c.shareEvent("share", i, doc{"target_space_guids": req.guids()})
}

// spacesToShareWith are the spaces, in all of which the actor must be able to
// write.
func (c *call) spacesToShareWith(i *cf.ServiceInstance, guids []string) (spaces []*cf.Space, err error) {
	var unseen, unwritable []string
	for _, guid := range guids {
		s, err := store.Spaces.Visible(c.Tx, guid, c.Scope)
		if store.IsNotFound(err) {
			unseen = append(unseen, "'"+guid+"'")
			continue
		}
		if err != nil {
			return nil, err
		}
		org, err := store.Orgs.Get(c.Tx, s.OrgGUID)
		if err != nil {
			return nil, err
		}
		if !c.MayDevelop(s) || org.Suspended && !c.Actor.Admin {
			unwritable = append(unwritable, "'"+guid+"'")
			continue
		}
		spaces = append(spaces, s)
	}
	var messages []string
	if unseen != nil {
		messages = append(messages, "Unable to share service instance "+i.Name+" with spaces ["+strings.Join(unseen, ", ")+"]. Ensure the spaces exist and that you have access to them.")
	}
	if unwritable != nil {
		messages = append(messages, "Unable to share service instance "+i.Name+" with spaces ["+strings.Join(unwritable, ", ")+"]. Write permission is required in order to share a service instance with a space.")
	}
	if messages != nil {
		return nil, cf.Unprocessable("%s", strings.Join(messages, "\n"))
	}
	return spaces, nil
}

// serviceShareable refuses an instance that cannot be shared, with these spaces or at
// all.
func (c *call) serviceShareable(i *cf.ServiceInstance, spaces []*cf.Space) error {
	route, err := c.isRouteService(i)
	switch {
	case err != nil:
		return err
	case route:
		return cf.Unprocessable("Route services cannot be shared.")
	case i.Type != cf.Managed:
		return cf.Unprocessable("User-provided services cannot be shared.")
	}
	o, err := c.offerOf(i)
	if err != nil {
		return err
	}
	if !o.offering.Shareable() {
		return cf.Unprocessable("The %s service does not support service instance sharing.", o.offering.Name)
	}
	for _, s := range spaces {
		if s.GUID == i.SpaceGUID {
			return cf.Unprocessable("Unable to share service instance '%s' with space '%s'. Service instances cannot be shared into the space where they were created.", i.Name, s.GUID)
		}
	}
	if !o.plan.Active {
		return cf.Unprocessable("The service instance could not be shared as the %s plan is inactive.", o.plan.Name)
	}
	for _, s := range spaces {
		if err := c.shareableWith(i, o, s); err != nil {
			return err
		}
	}
	switch op := i.LastOperation; {
	case op.Is(cf.OpCreate, cf.OpFailed):
		return cf.Errorf(cf.ServiceNotFound, "The service instance could not be found: %s", i.Name)
	case op.Type == cf.OpCreate && op.InProgress():
		return cf.Unprocessable("Service instance is currently being created. It can be shared after its creation succeeded.")
	case op.Type == cf.OpDelete && op.InProgress():
		return cf.Unprocessable("The service instance is getting deleted.")
	}
	return nil
}

func (c *call) shareableWith(i *cf.ServiceInstance, o offer, s *cf.Space) error {
	seen, err := c.planSeenIn(o.plan, s)
	if err != nil {
		return err
	}
	if !seen {
		org, err := store.Orgs.Get(c.Tx, s.OrgGUID)
		if err != nil {
			return err
		}
		return cf.Unprocessable("Access to service %s and plan %s is not enabled in %s/%s.", o.offering.Name, o.plan.Name, org.Name, s.Name)
	}
	for where, text := range map[string]string{
		"owner_space_guids":  "A service instance called %s already exists in %s.",
		"shared_space_guids": "A service instance called %s has already been shared with %s.",
	} {
		n, err := store.ServiceInstances.Count(c.Tx, store.Query{Where: map[string][]string{"names": {i.Name}, where: {s.GUID}}})
		if err != nil {
			return err
		}
		if n > 0 {
			return cf.Unprocessable(text, i.Name, s.Name)
		}
	}
	return nil
}

// unshareService takes a service instance out of a space.
func (c *call) unshareService(i *cf.ServiceInstance, space string) error {
	i.SharedSpaces = control.Without(i.SharedSpaces, func(g string) bool { return g == space })
	if err := store.ServiceInstances.Update(c.Tx, i); err != nil {
		return err
	}
	return c.shareEvent("unshare", i, doc{"target_space_guid": space})
}

func (c *call) shareEvent(what string, i *cf.ServiceInstance, data doc) error {
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return err
	}
	return c.Audit(audit.Of("service_instance", what), audit.Target{Type: "service_instance", GUID: i.GUID, Name: i.Name, Place: access.At(space)}, data)
}
