package services

import (
	"strings"

	"cupola/server/control"
	"cupola/server/control/access"
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
	rows, _, err := store.ServiceBindings.List(c.Tx, store.Query{Where: map[string][]string{"service_instance_guids": {i.GUID}, "type": {cf.BindingApp}}})
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

// SpacesToShareWith are the spaces, in all of which the actor must be able to
// write.
func SpacesToShareWith(c *control.Session, i *cf.ServiceInstance, guids []string) (spaces []*cf.Space, err error) {
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

// Shareable refuses an instance that cannot be shared, with these spaces or at
// all.
func Shareable(c *control.Session, i *cf.ServiceInstance, spaces []*cf.Space) error {
	route, err := isRouteService(c, i)
	switch {
	case err != nil:
		return err
	case route:
		return cf.Unprocessable("Route services cannot be shared.")
	case i.Type != cf.Managed:
		return cf.Unprocessable("User-provided services cannot be shared.")
	}
	o, err := OfferOf(c, i)
	if err != nil {
		return err
	}
	if !o.Offering.Shareable() {
		return cf.Unprocessable("The %s service does not support service instance sharing.", o.Offering.Name)
	}
	for _, s := range spaces {
		if s.GUID == i.SpaceGUID {
			return cf.Unprocessable("Unable to share service instance '%s' with space '%s'. Service instances cannot be shared into the space where they were created.", i.Name, s.GUID)
		}
	}
	if !o.Plan.Active {
		return cf.Unprocessable("The service instance could not be shared as the %s plan is inactive.", o.Plan.Name)
	}
	for _, s := range spaces {
		if err := shareableWith(c, i, o, s); err != nil {
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

func shareableWith(c *control.Session, i *cf.ServiceInstance, o Offer, s *cf.Space) error {
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

// Unshare takes a service instance out of a space.
func Unshare(c *control.Session, i *cf.ServiceInstance, space string) error {
	i.SharedSpaces = control.Without(i.SharedSpaces, func(g string) bool { return g == space })
	if err := store.ServiceInstances.Update(c.Tx, i); err != nil {
		return err
	}
	return ShareEvent(c, "unshare", i, audit.Data{"target_space_guid": space})
}

// ShareEvent records that an instance is shared, or no longer.
func ShareEvent(c *control.Session, what string, i *cf.ServiceInstance, data audit.Data) error {
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return err
	}
	return c.Audit(audit.Of("service_instance", what), audit.Target{Type: "service_instance", GUID: i.GUID, Name: i.Name, Place: access.At(space)}, data)
}
