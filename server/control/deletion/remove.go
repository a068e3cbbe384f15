package deletion

import (
	"slices"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/control/orgs"
	"cupola/server/control/routes"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// removeApp deletes an app with all that is its own, and takes it out of its
// routes. Its instances stop, since they are no longer desired.
func removeApp(c *control.Session, app *cf.App) error {
	if err := removeServices(c, app); err != nil {
		return err
	}
	err := control.EachOf(c, store.Routes, "app_guids", app.GUID, func(r *cf.Route) error {
		return routes.UnmapApp(c, r, app)
	})
	if err != nil {
		return err
	}
	gone, err := c.Tx.ThinApp(app.GUID, removedRows)
	if err != nil {
		return err
	}
	if err := partsRemoved(c, app, gone.Packages, gone.Droplets); err != nil {
		return err
	}
	if gone.Rows >= removedRows {
		return control.ErrMore
	}
	if err := restRemoved(c, app); err != nil {
		return err
	}
	if err := c.AuditApp(audit.AppDelete, app, nil); err != nil {
		return err
	}
	return store.Apps.Delete(c.Tx, app.GUID)
}

// partsRemoved records that packages and droplets of an app are deleted with it.
func partsRemoved(c *control.Session, app *cf.App, packages, droplets []string) error {
	for _, guid := range packages {
		if err := c.AuditApp(audit.AppPackageDelete, app, audit.Data{"package_guid": guid}); err != nil {
			return err
		}
	}
	for _, guid := range droplets {
		if err := c.AuditApp(audit.AppDropletDelete, app, audit.Data{"droplet_guid": guid}); err != nil {
			return err
		}
	}
	return nil
}

// restRemoved records what goes with the row of an app.
func restRemoved(c *control.Session, app *cf.App) error {
	packages, err := store.Packages.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	droplets, err := store.Droplets.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	err = partsRemoved(c, app, control.GUIDs(packages, func(p *cf.Package) string { return p.GUID }),
		control.GUIDs(droplets, func(d *cf.Droplet) string { return d.GUID }))
	if err != nil {
		return err
	}
	return apps.EndEvents(c, app)
}

// removedRows is how many rows of an app, such as its tasks, go in one
// transaction.
const removedRows = 150

// removeServices deletes the bindings of an app, which are user-provided by
// now.
func removeServices(c *control.Session, app *cf.App) error {
	return control.EachOf(c, store.ServiceBindings.Table, "app_guids", app.GUID, func(b *cf.ServiceBinding) error {
		i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
		if err != nil {
			return err
		}
		return services.RemoveBinding(c, b, i)
	})
}

// removeServicesOf deletes the service instances of a space, which are
// user-provided by now, and takes out of it what is shared with it.
func removeServicesOf(c *control.Session, s *cf.Space) error {
	err := control.EachOf(c, store.ServiceInstances, "owner_space_guids", s.GUID, func(i *cf.ServiceInstance) error {
		return services.Remove(c, i, audit.UserProvidedDelete)
	})
	if err != nil {
		return err
	}
	return control.EachOf(c, store.ServiceInstances, "shared_space_guids", s.GUID, func(i *cf.ServiceInstance) error {
		return services.Unshare(c, i, s.GUID)
	})
}

// removeUnmapped deletes the routes of a space that lead nowhere.
func removeUnmapped(c *control.Session, s *cf.Space) error {
	return control.EachWhere(c, store.Routes, map[string][]string{"owner_space_guids": {s.GUID}, "unmapped": {"1"}}, func(r *cf.Route) error { return routes.Remove(c, r) })
}

// removeOrg deletes the org and all that is in it, as Cloud Controller does.
func removeOrg(c *control.Session, o *cf.Org) error {
	if err := control.EachOf(c, store.Spaces, "organization_guids", o.GUID, func(s *cf.Space) error { return removeSpace(c, s) }); err != nil {
		return err
	}
	if err := leaveDomains(c, o.GUID); err != nil {
		return err
	}
	if err := orgs.LeaveSegments(c, o.GUID); err != nil {
		return err
	}
	if err := store.Orgs.Delete(c.Tx, o.GUID); err != nil {
		return err
	}
	return c.Audit(audit.OrgDelete, audit.Target{Type: "organization", GUID: o.GUID, Name: o.Name, Place: authz.Place{OrgGUID: o.GUID}}, c.Request(audit.Data{"recursive": true}))
}

// leaveDomains deletes an org's private domains and its shares of others'.
func leaveDomains(c *control.Session, org string) error {
	domains, err := store.Domains.By(c.Tx, "usable_by_organization_guids", org)
	if err != nil {
		return err
	}
	for _, d := range domains {
		switch {
		case d.OrgGUID == org:
			err = routes.RemoveDomain(c, d)
		case slices.Contains(d.SharedOrgs, org):
			d.SharedOrgs = slices.DeleteFunc(d.SharedOrgs, func(g string) bool { return g == org })
			err = store.Domains.Update(c.Tx, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeSpace deletes a space with its apps, routes and services.
func removeSpace(c *control.Session, s *cf.Space) error {
	if err := removeServicesOf(c, s); err != nil {
		return err
	}
	if err := control.EachOf(c, store.Apps, "space_guids", s.GUID, func(a *cf.App) error { return removeApp(c, a) }); err != nil {
		return err
	}
	if err := control.EachOf(c, store.Routes, "owner_space_guids", s.GUID, func(r *cf.Route) error { return routes.Drop(c, r) }); err != nil {
		return err
	}
	if err := routes.Leave(c, s.GUID); err != nil {
		return err
	}
	if err := orgs.LeaveSecurityGroups(c, s.GUID); err != nil {
		return err
	}
	if err := store.Spaces.Delete(c.Tx, s.GUID); err != nil {
		return err
	}
	return orgs.SpaceEvent(c, audit.SpaceDelete, s, audit.Data{"recursive": true})
}
