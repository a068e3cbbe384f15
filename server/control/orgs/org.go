package orgs

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// Insert adds an org. One who is no admin gets the roles to manage it.
func Insert(c *control.Session, o *cf.Org) error {
	err := store.Orgs.Insert(c.Tx, o)
	if store.IsTaken(err) {
		return cf.Unprocessable("Organization '%s' already exists.", o.Name)
	}
	if err != nil {
		return err
	}
	if !c.Actor.Admin {
		for _, t := range []cf.RoleType{cf.OrgUser, cf.OrgManager} {
			if err := grant(c, t, o.GUID); err != nil {
				return err
			}
		}
	}
	return c.Audit(audit.OrgCreate, audit.Target{Type: "organization", GUID: o.GUID, Name: o.Name, Place: authz.Place{OrgGUID: o.GUID}}, nil)
}

// grant gives the actor a role, for what an org's maker gets.
func grant(c *control.Session, t cf.RoleType, org string) error {
	return store.Roles.Insert(c.Tx, &cf.Role{Type: t, UserGUID: c.Actor.GUID, OrgGUID: org})
}

// SpaceEvent records an event of a space.
func SpaceEvent(c *control.Session, kind audit.Type, s *cf.Space) error {
	return c.Audit(kind, audit.Target{Type: "space", GUID: s.GUID, Name: s.Name, Place: access.At(s)}, nil)
}
