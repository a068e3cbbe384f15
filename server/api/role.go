package api

import (
	"fmt"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/change"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

func viewRole(c *call, r *cf.Role) doc {
	links := doc{"self": c.link("/v3/roles/%s", r.GUID), "user": c.link("/v3/users/%s", r.UserGUID)}
	org, space := r.OrgGUID, r.SpaceGUID
	if r.Type.OfOrg() {
		links["organization"] = c.link("/v3/organizations/%s", org)
	} else {
		links["space"], org = c.link("/v3/spaces/%s", space), ""
	}
	return with(resource(r.Resource), doc{
		"type":          r.Type,
		"relationships": doc{"user": toOne(r.UserGUID), "organization": toOne(org), "space": toOne(space)},
		"links":         links,
	})
}

const roleIncludes = "include=user|organization|space"

func includeOfRoles(c *call, rows []*cf.Role, what string) (string, []doc, error) {
	switch what {
	case "user":
		docs, err := including(c, store.Users, viewUser, control.GUIDs(rows, func(r *cf.Role) string { return r.UserGUID }))
		return "users", docs, err
	case "space":
		docs, err := including(c, store.Spaces, viewSpace, control.GUIDs(rows, func(r *cf.Role) string { return r.SpaceGUID }))
		return "spaces", docs, err
	}
	var orgs []string
	for _, r := range rows {
		if r.SpaceGUID == "" {
			orgs = append(orgs, r.OrgGUID)
		}
	}
	docs, err := including(c, store.Orgs, viewOrg, orgs)
	return "organizations", docs, err
}

var listRoles = inTx(func(c *call) (*response, error) {
	return listIncluding(c, store.Roles, viewRole, includeOfRoles, roleIncludes)
})

type roleRequest struct {
	Type          cf.RoleType       `json:"type"`
	Relationships roleRelationships `json:"relationships"`
}

type roleRelationships struct {
	User struct {
		Data struct {
			GUID     change.Field[string] `json:"guid"`
			Username change.Field[string] `json:"username"`
			Origin   change.Field[string] `json:"origin"`
		} `json:"data"`
	} `json:"user"`
	Organization ref `json:"organization"`
	Space        ref `json:"space"`
}

// roleTypes is in the order in which Cloud Controller names them.
const roleTypes = `["organization_auditor", "organization_manager", "organization_billing_manager", "organization_user", ` +
	`"space_auditor", "space_manager", "space_developer", "space_supporter"]`

func (r roleRequest) Validate() []string {
	faults := control.Must(r.Type.Valid(), "Type must be one of the allowed types "+roleTypes)
	for _, f := range r.Relationships.faults(r.Type) {
		faults = append(faults, "Relationships "+f)
	}
	return faults
}

func (r roleRelationships) faults(t cf.RoleType) []string {
	u, org, space := r.User.Data, r.Organization.guid() != "", r.Space.guid() != ""
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

func createRole(c *call) (*response, error) {
	var req roleRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	role := &cf.Role{Type: req.Type}
	var where string
	var err error
	if req.Type.OfOrg() {
		where, err = c.orgRole(role, req.Relationships)
	} else {
		where, err = c.spaceRole(role, req.Relationships)
	}
	if err != nil {
		return nil, err
	}
	user, err := store.Users.Get(c.Tx, role.UserGUID)
	if err != nil {
		return nil, err
	}
	err = store.Roles.Insert(c.Tx, role)
	if store.IsTaken(err) {
		return nil, cf.Unprocessable("User '%s' already has '%s' role in %s.", orgs.PresentationName(user), role.Type, where)
	}
	if err != nil {
		return nil, err
	}
	if err := orgs.RoleEvent(c.Session, "add", role, user); err != nil {
		return nil, err
	}
	return created(viewRole(c, role))
}

// orgRole fills in a role in an org, and names the org. Who has a GUID of a
// user that is not known yet makes him known.
func (c *call) orgRole(role *cf.Role, r roleRelationships) (where string, err error) {
	org, err := store.Orgs.Get(c.Tx, r.Organization.guid())
	if err != nil {
		c.Checked = true
		return "", control.Unprocessable(err, "Invalid organization. Ensure that the organization exists and you have access to it.")
	}
	if err := c.Permit(authz.Place{OrgGUID: org.GUID}); err != nil {
		return "", err
	}
	role.OrgGUID = org.GUID
	where = fmt.Sprintf("organization '%s'", org.Name)
	if role.UserGUID = r.User.Data.GUID.V; role.UserGUID == "" {
		role.UserGUID, err = c.userNamed(r, false)
		return where, err
	}
	_, err = store.Users.Get(c.Tx, role.UserGUID)
	if store.IsNotFound(err) {
		err = store.Users.Insert(c.Tx, bareUser(role.UserGUID))
	}
	return where, err
}

// spaceRole fills in a role in a space, and names the space. Its user must have
// a role in the org already.
func (c *call) spaceRole(role *cf.Role, r roleRelationships) (where string, err error) {
	space, err := store.Spaces.Get(c.Tx, r.Space.guid())
	if err != nil {
		c.Checked = true
		return "", control.Unprocessable(err, "Invalid space. Ensure that the space exists and you have access to it.")
	}
	if err := c.Permit(access.At(space)); err != nil {
		return "", err
	}
	role.OrgGUID, role.SpaceGUID = space.OrgGUID, space.GUID
	if role.UserGUID = r.User.Data.GUID.V; role.UserGUID == "" {
		if role.UserGUID, err = c.userNamed(r, true); err != nil {
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
func (c *call) userNamed(r roleRelationships, inSpace bool) (string, error) {
	if err := c.Feature("set_roles_by_username"); err != nil {
		return "", err
	}
	name, origin := r.User.Data.Username.V, r.User.Data.Origin.V
	where := map[string][]string{"usernames": {name}}
	if origin != "" {
		where["origins"] = []string{origin}
	}
	found, _, err := store.Users.List(c.Tx, store.Query{Where: where, Order: "origin"})
	switch {
	case err != nil:
		return "", err
	case len(found) == 1:
		return found[0].GUID, nil
	case len(found) > 1:
		return "", cf.Unprocessable("Ambiguous user. User with username '%s' exists in the following origins: %s. Specify an origin to disambiguate.",
			name, strings.Join(control.GUIDs(found, func(u *cf.User) string { return u.Origin }), ", "))
	case inSpace:
		return "", noRoleInOrg()
	case origin != "":
		return "", cf.Unprocessable("No user exists with the username '%s' and origin '%s'.", name, origin)
	}
	return "", cf.Unprocessable("No user exists with the username '%s'.", name)
}

func deleteRole(c *call) (*response, error) {
	r, err := store.Roles.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	if err := c.Permit(authz.Place{OrgGUID: r.OrgGUID, SpaceGUID: r.SpaceGUID}); err != nil {
		return nil, err
	}
	if err := orgs.MayLeave(c.Session, r); err != nil {
		return nil, err
	}
	user, err := store.Users.Get(c.Tx, r.UserGUID)
	if err != nil {
		return nil, err
	}
	if err := store.Roles.Delete(c.Tx, r.GUID); err != nil {
		return nil, err
	}
	if err := orgs.RoleEvent(c.Session, "remove", r, user); err != nil {
		return nil, err
	}
	return c.accepted("role.delete", "roles", r.GUID)
}
