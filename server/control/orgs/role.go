package orgs

import (
	"fmt"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// NewRole is a role to be given to a user. It is in an org or, where its type says so,
// a space.
type NewRole struct {
	Type          cf.RoleType       `json:"type"`
	Relationships roleRelationships `json:"relationships"`
}

type roleRelationships struct {
	User struct {
		Data namedUser `json:"data"`
	} `json:"user"`
	Organization change.ToOne `json:"organization"`
	Space        change.ToOne `json:"space"`
}

// namedUser is the user of a new role: the one with the GUID or, without that, with the
// name, of any origin where that is "".
type namedUser struct {
	GUID     change.Field[string] `json:"guid"`
	Username change.Field[string] `json:"username"`
	Origin   change.Field[string] `json:"origin"`
}

// roleTypes is in the order in which Cloud Controller names them.
const roleTypes = `["organization_auditor", "organization_manager", "organization_billing_manager", "organization_user", ` +
	`"space_auditor", "space_manager", "space_developer", "space_supporter"]`

// Validate lists what is wrong with the role, in Cloud Controller's words.
func (r NewRole) Validate() []string {
	faults := control.Must(r.Type.Valid(), "Type must be one of the allowed types "+roleTypes)
	for _, f := range r.Relationships.faults(r.Type) {
		faults = append(faults, "Relationships "+f)
	}
	return faults
}

func (r roleRelationships) faults(t cf.RoleType) []string {
	u, org, space := r.User.Data, r.Organization.GUID() != "", r.Space.GUID() != ""
	return control.Must(!u.GUID.Set || !u.Username.Set, "Username cannot be specified when identifying user by guid",
		!u.GUID.Set || !u.Origin.Set, "User origin cannot be specified when identifying user by guid",
		u.Username.Set || !u.Origin.Set, "User origin cannot be specified without specifying the username",
		len(u.GUID.V) <= 200, "User guid must be between 1 and 200 characters",
		u.Username.V != "" || u.GUID.V != "", "User must have a username or guid specified",
		org || space, "must specify either a space or an organization.",
		!space || !t.Valid() || !t.OfOrg(), fmt.Sprintf("Space cannot be provided with the organization role type: '%s'.", t),
		!org || !t.Valid() || t.OfOrg(), fmt.Sprintf("Organization cannot be provided with the space role type: '%s'.", t),
		!org || !space, "cannot specify both an organization and a space.")
}

// AddRole gives a user a role.
func AddRole(c *control.Session, r NewRole) (*cf.Role, error) {
	role, fill := &cf.Role{Type: r.Type}, inSpace
	if r.Type.OfOrg() {
		fill = inOrg
	}
	where, err := fill(c, role, r.Relationships)
	if err != nil {
		return nil, err
	}
	user, err := store.Users.Get(c.Tx, role.UserGUID)
	if err != nil {
		return nil, err
	}
	err = store.Roles.Insert(c.Tx, role)
	if store.IsTaken(err) {
		return nil, cf.Unprocessable("User '%s' already has '%s' role in %s.", PresentationName(user), role.Type, where)
	}
	if err != nil {
		return nil, err
	}
	return role, roleEvent(c, "add", role, user)
}

// inOrg fills in a role in an org, and names the org. A user of whom only the
// GUID is known is added.
func inOrg(c *control.Session, role *cf.Role, r roleRelationships) (where string, err error) {
	org, err := store.Orgs.Get(c.Tx, r.Organization.GUID())
	if err != nil {
		return "", control.Unprocessable(err, "Invalid organization. Ensure that the organization exists and you have access to it.")
	}
	if err := c.Permit(access.OfOrg(org)); err != nil {
		return "", err
	}
	role.OrgGUID = org.GUID
	where = fmt.Sprintf("organization '%s'", org.Name)
	if role.UserGUID = r.User.Data.GUID.V; role.UserGUID == "" {
		role.UserGUID, err = userNamed(c, r)
		return where, err
	}
	_, err = store.Users.Get(c.Tx, role.UserGUID)
	if store.IsNotFound(err) {
		err = store.Users.Insert(c.Tx, bareUser(role.UserGUID))
	}
	return where, err
}

// inSpace fills in a role in a space, and names the space. Its user must have
// a role in the org already.
func inSpace(c *control.Session, role *cf.Role, r roleRelationships) (where string, err error) {
	space, err := store.Spaces.Get(c.Tx, r.Space.GUID())
	if err != nil {
		return "", control.Unprocessable(err, "Invalid space. Ensure that the space exists and you have access to it.")
	}
	if err := c.Permit(access.At(space)); err != nil {
		return "", err
	}
	role.OrgGUID, role.SpaceGUID = space.OrgGUID, space.GUID
	if role.UserGUID = r.User.Data.GUID.V; role.UserGUID == "" {
		if role.UserGUID, err = userNamed(c, r); err != nil {
			return "", err
		}
	}
	n, err := store.Roles.Count(c.Tx, store.Query{Where: map[string][]string{"user_guids": {role.UserGUID}, "organization_guids": {space.OrgGUID}}})
	if err == nil && n == 0 {
		err = noRoleInOrg()
	}
	return fmt.Sprintf("space '%s'", space.Name), err
}

func noRoleInOrg() error {
	return cf.Unprocessable("Users cannot be assigned roles in a space if they do not have a role in that space's organization.")
}

// userNamed gives the GUID of the user with a name, of whatever origin when
// none is given.
func userNamed(c *control.Session, r roleRelationships) (string, error) {
	if err := c.Feature("set_roles_by_username"); err != nil {
		return "", err
	}
	name, origin := r.User.Data.Username.V, r.User.Data.Origin.V
	where := map[string][]string{"usernames": {name}}
	if origin != "" {
		where["origins"] = []string{origin}
	}
	found, err := store.Users.Matching(c.Tx, store.Query{Where: where, Order: "origin"})
	switch {
	case err != nil:
		return "", err
	case len(found) > 1:
		return "", cf.Unprocessable("Ambiguous user. User with username '%s' exists in the following origins: %s. Specify an origin to disambiguate.",
			name, strings.Join(control.GUIDs(found, func(u *cf.User) string { return u.Origin }), ", "))
	case len(found) == 0:
		return "", nobodyNamed(r)
	}
	return found[0].GUID, nil
}

// nobodyNamed is the error for a name that no user has.
func nobodyNamed(r roleRelationships) error {
	name, origin := r.User.Data.Username.V, r.User.Data.Origin.V
	switch {
	case r.Space.GUID() != "":
		return noRoleInOrg()
	case origin != "":
		return cf.Unprocessable("No user exists with the username '%s' and origin '%s'.", name, origin)
	}
	return cf.Unprocessable("No user exists with the username '%s'.", name)
}

// RemoveRole takes a role from its user.
func RemoveRole(c *control.Session, r *cf.Role) error {
	if err := c.Permit(authz.Place{OrgGUID: r.OrgGUID, SpaceGUID: r.SpaceGUID}); err != nil {
		return err
	}
	if err := mayLeave(c, r); err != nil {
		return err
	}
	user, err := store.Users.Get(c.Tx, r.UserGUID)
	if err != nil {
		return err
	}
	if err := store.Roles.Delete(c.Tx, r.GUID); err != nil {
		return err
	}
	return roleEvent(c, "remove", r, user)
}

// roleEvent records that a user got or lost a role.
func roleEvent(c *control.Session, what string, r *cf.Role, u *cf.User) error {
	return c.Audit(audit.OfRole(r.Type, what),
		audit.Target{Type: "user", GUID: u.GUID, Name: PresentationName(u), Place: authz.Place{OrgGUID: r.OrgGUID, SpaceGUID: r.SpaceGUID}}, c.Request(c.Asked))
}

// mayLeave refuses to take a user out of an org who has roles in its spaces.
func mayLeave(c *control.Session, r *cf.Role) error {
	if r.Type != cf.OrgUser {
		return nil
	}
	all, err := store.Roles.By(c.Tx, "all_organization_guids", r.OrgGUID)
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.UserGUID == r.UserGUID && other.SpaceGUID != "" {
			return cf.Unprocessable("Cannot delete organization_user role while user has roles in spaces in that organization.")
		}
	}
	return nil
}
