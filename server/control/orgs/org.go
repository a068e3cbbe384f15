package orgs

import (
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// insert adds an org. One who is not an admin gets the roles to manage it.
func insert(c *control.Session, o *cf.Org) error {
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
	return orgEvent(c, audit.OrgCreate, o, c.Asked)
}

func orgEvent(c *control.Session, kind audit.Type, o *cf.Org, request audit.Data) error {
	return c.Audit(kind, audit.Target{Type: "organization", GUID: o.GUID, Name: o.Name, Place: access.OfOrg(o)}, c.Request(request))
}

// grant gives the actor a role, for what an org's maker gets.
func grant(c *control.Session, t cf.RoleType, org string) error {
	return store.Roles.Insert(c.Tx, &cf.Role{Type: t, UserGUID: c.Actor.GUID, OrgGUID: org})
}

// SpaceEvent records an event of a space, and the request for it.
func SpaceEvent(c *control.Session, kind audit.Type, s *cf.Space, request audit.Data) error {
	return c.Audit(kind, audit.Target{Type: "space", GUID: s.GUID, Name: s.Name, Place: access.At(s)}, c.Request(request))
}

// OrgChange is a change of an org.
type OrgChange struct {
	Name      change.Field[string] `json:"name"`
	Suspended change.Field[bool]   `json:"suspended"`
	Metadata  *change.Metadata     `json:"metadata"`
}

// Create makes an org.
func Create(c *control.Session, req OrgChange) (*cf.Org, error) {
	if req.Suspended.V && !c.Actor.Admin {
		return nil, access.NotAuthorized()
	}
	if err := control.Invalid(control.NameFaults(req.Name.V)); err != nil {
		return nil, err
	}
	o := &cf.Org{Name: req.Name.V, Suspended: req.Suspended.V}
	if q, err := store.OrgQuotas.First(c.Tx, store.Query{}); err == nil {
		o.QuotaGUID = q.GUID // the oldest is the default
	}
	if err := req.Metadata.Apply(&o.Metadata); err != nil {
		return nil, err
	}
	return o, insert(c, o)
}

// MayCreate lets users make orgs who are not admins when the operator wants it so.
func MayCreate(c *control.Session) error {
	if c.Actor.Admin {
		return c.PermitAdmin()
	}
	c.Checked = true
	f, err := c.Flag("user_org_creation")
	if err == nil && !f.Enabled {
		err = access.NotAuthorized()
	}
	return err
}

// Update changes an org. Only admins suspend one.
func Update(c *control.Session, o *cf.Org, req OrgChange) error {
	if req.Suspended.V && !c.Actor.Admin {
		return access.NotAuthorized()
	}
	if req.Name.Set {
		o.Name = req.Name.V
	}
	if req.Suspended.Set {
		o.Suspended = req.Suspended.V
	}
	if err := control.Invalid(control.NameFaults(o.Name)); err != nil {
		return err
	}
	if err := req.Metadata.Apply(&o.Metadata); err != nil {
		return err
	}
	err := store.Orgs.Update(c.Tx, o)
	if store.IsTaken(err) {
		return cf.Unprocessable("Organization name '%s' is already taken.", o.Name)
	}
	if err != nil {
		return err
	}
	return orgEvent(c, audit.OrgUpdate, o, c.Asked)
}
