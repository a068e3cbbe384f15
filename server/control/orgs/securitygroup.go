package orgs

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/store"
	"cupola/store/cf"
)

// unknownSpaces are those of the spaces that the actor does not see.
func unknownSpaces(c *control.Session, guids []string) ([]string, error) {
	if len(guids) == 0 {
		return nil, nil
	}
	found, _, err := store.Spaces.List(c.Tx, store.Query{Where: map[string][]string{"guids": guids}, Visible: c.Scope})
	known := control.GUIDs(found, func(s *cf.Space) string { return s.GUID })
	return control.Without(guids, func(g string) bool { return slices.Contains(known, g) }), err
}

// MayBind checks the rule in every space.
func MayBind(c *control.Session, guids []string) error {
	c.Checked = true
	for _, guid := range guids {
		space, err := store.Spaces.Get(c.Tx, guid)
		if err == nil {
			err = c.Permit(access.At(space))
		}
		if err != nil && !store.IsNotFound(err) {
			return err
		}
	}
	unknown, err := unknownSpaces(c, guids)
	if err == nil && len(unknown) > 0 {
		err = cf.Unprocessable("Spaces with guids %s do not exist, or you do not have access to them.", control.Inspect(unknown))
	}
	return err
}

// LeaveSecurityGroups takes a space out of the groups it is bound to.
func LeaveSecurityGroups(c *control.Session, space string) error {
	all, err := store.SecurityGroups.All(c.Tx)
	if err != nil {
		return err
	}
	is := func(s string) bool { return s == space }
	for _, g := range all {
		if !slices.Contains(g.RunningSpaces, space) && !slices.Contains(g.StagingSpaces, space) {
			continue
		}
		g.RunningSpaces, g.StagingSpaces = control.Without(g.RunningSpaces, is), control.Without(g.StagingSpaces, is)
		if err := store.SecurityGroups.Update(c.Tx, g); err != nil {
			return err
		}
	}
	return nil
}

// AddSecurityGroup adds a security group, which may be bound to spaces already.
func AddSecurityGroup(c *control.Session, g *cf.SecurityGroup) error {
	if g.Name == "" {
		return cf.Unprocessable("Name can't be blank")
	}
	for _, list := range [][]string{g.StagingSpaces, g.RunningSpaces} {
		if unknown, err := unknownSpaces(c, list); err != nil || len(unknown) > 0 {
			return control.OrElse(err, cf.Unprocessable("Spaces with guids %s do not exist.", control.Inspect(unknown)))
		}
	}
	return securityGroupTaken(g, store.SecurityGroups.Insert(c.Tx, g))
}

// SaveSecurityGroup writes a security group that was changed.
func SaveSecurityGroup(c *control.Session, g *cf.SecurityGroup) error {
	return securityGroupTaken(g, store.SecurityGroups.Update(c.Tx, g))
}

func securityGroupTaken(g *cf.SecurityGroup, err error) error {
	if store.IsTaken(err) {
		return cf.Unprocessable("Security group with name '%s' already exists.", g.Name)
	}
	return err
}
