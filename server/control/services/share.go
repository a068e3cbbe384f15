package services

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// PlacedBinding is an app's binding, and the app's space.
type PlacedBinding struct {
	*cf.ServiceBinding
	Space string
}

// AppBindings are the bindings of apps to an instance.
func AppBindings(c *control.Session, i *cf.ServiceInstance) ([]PlacedBinding, error) {
	rows, err := store.ServiceBindings.Where(c.Tx, boundApps(i))
	if err != nil {
		return nil, err
	}
	apps, err := store.Apps.By(c.Tx, "guids", control.GUIDs(rows, func(b *cf.ServiceBinding) string { return b.AppGUID })...)
	space := map[string]string{}
	for _, a := range apps {
		space[a.GUID] = a.SpaceGUID
	}
	var list []PlacedBinding
	for _, b := range rows {
		list = append(list, PlacedBinding{b, space[b.AppGUID]})
	}
	return list, err
}

// Share shares a service instance with spaces.
func Share(c *control.Session, i *cf.ServiceInstance, guids []string) error {
	if len(guids) == 0 {
		return cf.Unprocessable("Data can't be blank")
	}
	spaces, err := c.ShareTargets("service instance "+i.Name, guids, "service instance with a space.")
	if err != nil {
		return err
	}
	if err := shareable(c, i, spaces); err != nil {
		return err
	}
	for _, s := range spaces {
		if !slices.Contains(i.SharedSpaces, s.GUID) {
			i.SharedSpaces = append(i.SharedSpaces, s.GUID)
		}
	}
	if err := store.ServiceInstances.Update(c.Tx, i); err != nil {
		return err
	}
	return shareEvent(c, audit.ServiceInstanceShare, i, audit.Data{"target_space_guids": guids})
}

// shareable refuses an instance that cannot be shared, with these spaces or at
// all.
func shareable(c *control.Session, i *cf.ServiceInstance, spaces []*cf.Space) error {
	route, err := isRouteService(c, i)
	switch {
	case err != nil:
		return err
	case route:
		return cf.Unprocessable("Route services cannot be shared.")
	case i.Type != cf.Managed:
		return cf.Unprocessable("User-provided services cannot be shared.")
	}
	o, err := offerOf(c, i)
	if err != nil {
		return err
	}
	switch {
	case !o.Offering.Shareable():
		return cf.Unprocessable("The %s service does not support service instance sharing.", o.Offering.Name)
	case slices.ContainsFunc(spaces, func(s *cf.Space) bool { return s.GUID == i.SpaceGUID }):
		return cf.Unprocessable("Unable to share service instance '%s' with space '%s'. Service instances cannot be shared into the space where they were created.", i.Name, i.SpaceGUID)
	case !o.Plan.Active:
		return cf.Unprocessable("The service instance could not be shared as the %s plan is inactive.", o.Plan.Name)
	}
	if err := shareableWith(c, i, o, spaces); err != nil {
		return err
	}
	return shareableNow(i)
}

// shareableNow refuses an instance that is not there yet, or soon no more.
func shareableNow(i *cf.ServiceInstance) error {
	switch op := i.LastOperation; {
	case op.Is(cf.OpCreate, cf.OpFailed):
		return notFound(i)
	case op.Type == cf.OpCreate && op.InProgress():
		return cf.Unprocessable("Service instance is currently being created. It can be shared after its creation succeeded.")
	case op.Type == cf.OpDelete && op.InProgress():
		return cf.Unprocessable("The service instance is getting deleted.")
	}
	return nil
}

// shareableWith refuses spaces that do not see the plan, or have an instance of
// the name.
func shareableWith(c *control.Session, i *cf.ServiceInstance, o Offer, spaces []*cf.Space) error {
	for _, s := range spaces {
		seen, err := planSeenIn(c, o.Plan, s)
		if err != nil {
			return err
		}
		if !seen {
			org, err := store.Orgs.Get(c.Tx, s.OrgGUID)
			if err != nil {
				return err
			}
			return cf.Unprocessable("Access to service %s and plan %s is not enabled in %s/%s.", o.Offering.Name, o.Plan.Name, org.Name, s.Name)
		}
		if err := nameFree(c, i.Name, s); err != nil {
			return err
		}
	}
	return nil
}

// nameFree refuses to share an instance with a space that has one of the name.
func nameFree(c *control.Session, name string, s *cf.Space) error {
	for where, text := range map[string]string{
		"owner_space_guids":  "A service instance called %s already exists in %s.",
		"shared_space_guids": "A service instance called %s has already been shared with %s.",
	} {
		n, err := store.ServiceInstances.Count(c.Tx, store.Query{Where: map[string][]string{"names": {name}, where: {s.GUID}}})
		if err != nil {
			return err
		}
		if n > 0 {
			return cf.Unprocessable(text, name, s.Name)
		}
	}
	return nil
}

// Unshare takes a service instance out of a space.
func Unshare(c *control.Session, i *cf.ServiceInstance, space string) error {
	i.SharedSpaces = control.Without(i.SharedSpaces, func(g string) bool { return g == space })
	if err := store.ServiceInstances.Update(c.Tx, i); err != nil {
		return err
	}
	return shareEvent(c, audit.ServiceInstanceUnshare, i, audit.Data{"target_space_guid": space})
}

func shareEvent(c *control.Session, kind audit.Type, i *cf.ServiceInstance, data audit.Data) error {
	return event(c, kind, i.SpaceGUID, audit.Target{Type: "service_instance", GUID: i.GUID, Name: i.Name}, data)
}
