package api

import (
	"fmt"

	"cupola/server/control"
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
	who := req.Relationships.User.Data
	role, err := orgs.AddRole(c.Session, orgs.NewRole{Type: req.Type, OrgGUID: req.Relationships.Organization.guid(), SpaceGUID: req.Relationships.Space.guid(),
		UserGUID: who.GUID.V, Username: who.Username.V, Origin: who.Origin.V})
	if err != nil {
		return nil, err
	}
	return created(viewRole(c, role))
}

func deleteRole(c *call) (*response, error) {
	r, err := store.Roles.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	if err := orgs.RemoveRole(c.Session, r); err != nil {
		return nil, err
	}
	return c.accepted("role.delete", "roles", r.GUID)
}
