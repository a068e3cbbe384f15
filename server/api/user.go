package api

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

// viewUser shows a user; one that was made from a bare GUID, as clients are,
// has no origin and so no name.
func viewUser(c *call, u *cf.User) doc {
	name := u.Username
	if u.Origin == "" {
		name = ""
	}
	return with(resource(u.Resource), doc{
		"username": control.OrNil(name), "presentation_name": orgs.PresentationName(u), "origin": control.OrNil(u.Origin), "metadata": metadata(u.Metadata),
		"links": doc{"self": c.link("/v3/users/%s", u.GUID)},
	})
}

// listUsers refuses the filters that Cloud Controller does not take together.
var listUsers = inTx(func(c *call) (*response, error) {
	return listRows(c, store.Users, viewUser, checkUserFilters)
})

func checkUserFilters(q *listQuery) error {
	_, names := q.Where["usernames"]
	_, parts := q.Where["partial_usernames"]
	_, origins := q.Where["origins"]
	return control.Invalid(control.Must(!origins || names || parts, "Origins filter cannot be provided without usernames or partial_usernames filter.",
		!names || !parts, "Usernames filter cannot be provided with both usernames and partial_usernames filter."))
}

var findUser = ofPlatform(store.Users)

// listHolders lists the users who have one of the roles that a filter accepts for the
// org or space of {guid}.
func listHolders[T any](find finder[T], filter string) endpoint {
	return func(c *call) (*response, error) {
		if _, err := find(c); err != nil {
			return nil, err
		}
		roles, err := store.Roles.By(c.Tx, filter, c.guid())
		if err != nil {
			return nil, err
		}
		holders := control.GUIDs(roles, func(r *cf.Role) string { return r.UserGUID })
		return listRows(c, store.Users, viewUser, func(q *listQuery) error {
			if err := checkUserFilters(q); err != nil {
				return err
			}
			q.Where["guids"] = intersection(q.Where, "guids", holders)
			return nil
		})
	}
}

// intersection is the values that a filter and a list have both; a filter that
// is not set has all.
func intersection(where map[string][]string, filter string, list []string) []string {
	wanted, set := where[filter]
	if !set {
		return list
	}
	return among(wanted, list)
}

// among are the values that another list has, too; never nil.
func among(list, other []string) []string {
	return control.Without(list, func(s string) bool { return !slices.Contains(other, s) })
}
