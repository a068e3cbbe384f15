package api

import (
	"cupola/server/control"
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

// findRole finds the role of {guid}; taking it away checks the rule at its place.
func findRole(c *call) (*cf.Role, error) { return store.Roles.Visible(c.Tx, c.guid(), c.Scope) }
