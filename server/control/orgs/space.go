package orgs

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// visibleSpaces are those of some spaces that the actor sees, and the GUIDs of the
// rest.
func visibleSpaces(c *control.Session, guids []string) (spaces []*cf.Space, unknown []string, err error) {
	spaces, err = store.Spaces.Matching(c.Tx, store.Query{Where: map[string][]string{"guids": guids}, Visible: c.Scope})
	return spaces, control.Missing(guids, spaceGUIDs(spaces)), err
}

func spaceGUIDs(spaces []*cf.Space) []string {
	return control.GUIDs(spaces, func(s *cf.Space) string { return s.GUID })
}

// NewSpace is a space to be made in an org.
type NewSpace struct {
	Name          change.Field[string] `json:"name"`
	Metadata      *change.Metadata     `json:"metadata"`
	Relationships struct {
		Organization change.ToOne `json:"organization"`
	} `json:"relationships"`
}

// SpaceChange is a change of a space.
type SpaceChange struct {
	Name     change.Field[string] `json:"name"`
	Metadata *change.Metadata     `json:"metadata"`
}

// CreateSpace makes a space in an org that the actor sees.
func CreateSpace(c *control.Session, req NewSpace) (*cf.Space, error) {
	if err := control.Invalid(control.NameFaults(req.Name.V)); err != nil {
		return nil, err
	}
	org, err := store.Orgs.Visible(c.Tx, req.Relationships.Organization.GUID(), c.Scope)
	if err != nil {
		return nil, control.Unprocessable(err, "Invalid organization. Ensure the organization exists and you have access to it.")
	}
	if err := c.Permit(authz.Place{OrgGUID: org.GUID}); err != nil {
		return nil, err
	}
	s := &cf.Space{Name: req.Name.V, OrgGUID: org.GUID, AllowSSH: true}
	if err := req.Metadata.Apply(&s.Metadata); err != nil {
		return nil, err
	}
	err = store.Spaces.Insert(c.Tx, s)
	if store.IsTaken(err) {
		err = cf.Unprocessable("Name must be unique per organization")
	}
	if err != nil {
		return nil, err
	}
	return s, SpaceEvent(c, audit.SpaceCreate, s, c.Asked)
}

// AllowSSH lets developers reach the apps of a space with cf ssh, or does not.
func AllowSSH(c *control.Session, s *cf.Space, allow bool) error {
	s.AllowSSH = allow
	return store.Spaces.Update(c.Tx, s)
}

// UpdateSpace changes a space.
func UpdateSpace(c *control.Session, s *cf.Space, req SpaceChange) error {
	if req.Name.Set {
		s.Name = req.Name.V
	}
	if err := control.Invalid(control.NameFaults(s.Name)); err != nil {
		return err
	}
	if err := req.Metadata.Apply(&s.Metadata); err != nil {
		return err
	}
	if err := spaceTaken(c, s, store.Spaces.Update(c.Tx, s)); err != nil {
		return err
	}
	return SpaceEvent(c, audit.SpaceUpdate, s, c.Asked)
}

// spaceTaken says in Cloud Controller's words that the org of a space has another of
// its name.
func spaceTaken(c *control.Session, s *cf.Space, err error) error {
	if !store.IsTaken(err) {
		return err
	}
	org, err := store.Orgs.Get(c.Tx, s.OrgGUID)
	if err != nil {
		return err
	}
	return cf.Unprocessable("Organization '%s' already contains a space with name '%s'.", org.Name, s.Name)
}
