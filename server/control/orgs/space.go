package orgs

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// SpaceChange is a change of a space.
type SpaceChange struct {
	Name     change.Field[string] `json:"name"`
	Metadata *change.Metadata     `json:"metadata"`
}

// CreateSpace makes a space in an org that the actor sees.
func CreateSpace(c *control.Session, orgGUID string, req SpaceChange) (*cf.Space, error) {
	if err := control.Invalid(control.NameFaults(req.Name.V)); err != nil {
		return nil, err
	}
	org, err := store.Orgs.Visible(c.Tx, orgGUID, c.Scope)
	if err != nil {
		c.Checked = true
		return nil, control.Unprocessable(err, "Invalid organization. Ensure the organization exists and you have access to it.")
	}
	if err := c.Permit(authz.Place{OrgGUID: org.GUID}); err != nil {
		return nil, err
	}
	s := &cf.Space{Name: req.Name.V, OrgGUID: org.GUID, AllowSSH: true}
	if err := req.Metadata.Apply(&s.Metadata); err != nil {
		return nil, err
	}
	if err := spaceTaken(store.Spaces.Insert(c.Tx, s)); err != nil {
		return nil, err
	}
	return s, SpaceEvent(c, audit.SpaceCreate, s)
}

// UpdateSpace changes a space.
func UpdateSpace(c *control.Session, s *cf.Space, req SpaceChange) error {
	s.Name = req.Name.Or(s.Name)
	if err := control.Invalid(control.NameFaults(s.Name)); err != nil {
		return err
	}
	if err := req.Metadata.Apply(&s.Metadata); err != nil {
		return err
	}
	if err := spaceTaken(store.Spaces.Update(c.Tx, s)); err != nil {
		return err
	}
	return SpaceEvent(c, audit.SpaceUpdate, s)
}

// spaceTaken says in Cloud Controller's words that there is such a space.
func spaceTaken(err error) error {
	if store.IsTaken(err) {
		return cf.Unprocessable("Name must be unique per organization")
	}
	return err
}
