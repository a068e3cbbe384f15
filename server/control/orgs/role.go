package orgs

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// RoleEvent records that a user got or lost a role.
func RoleEvent(c *control.Session, what string, r *cf.Role, u *cf.User) error {
	return c.Audit(audit.OfRole(r.Type, what),
		audit.Target{Type: "user", GUID: u.GUID, Name: PresentationName(u), Place: authz.Place{OrgGUID: r.OrgGUID, SpaceGUID: r.SpaceGUID}}, nil)
}

// MayLeave refuses to take a user out of an org who has roles in its spaces.
func MayLeave(c *control.Session, r *cf.Role) error {
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

// PresentationName is what users are called: by their GUID, where that is all that is known.
func PresentationName(u *cf.User) string {
	if u.Origin == "" {
		return u.GUID
	}
	return u.Username
}
