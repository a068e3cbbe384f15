package api

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/change"
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

type userRequest struct {
	GUID     change.Field[string] `json:"guid"`
	Username change.Field[string] `json:"username"`
	Origin   change.Field[string] `json:"origin"`
	Metadata *change.Metadata     `json:"metadata"`
}

func (r userRequest) Validate() []string {
	guid, name, origin := r.GUID.V != "", r.Username.V != "", r.Origin.V != ""
	if guid {
		return control.Must(!name, "Username cannot be provided with 'guid'", !origin, "Origin cannot be provided with 'guid'",
			len(r.GUID.V) <= 200, "Guid must be between 1 and 200 characters")
	}
	return control.Must(name || origin, "Guid or 'username' and 'origin' must be provided",
		name || !origin, "Origin can only be provided together with 'username'",
		origin || !name, "Username can only be provided together with 'origin'",
		r.Origin.V != "uaa", "Origin cannot be 'uaa' when creating a user by username")
}

// createUser makes a user known. The UAA's users and Cloud Controller's are
// one here, so that one the UAA made is known already.
func createUser(c *call) (*response, error) {
	var req userRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	u, err := c.knownUser(req)
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&u.Metadata); err != nil {
		return nil, err
	}
	if err := store.Users.Put(c.Tx, u); err != nil {
		return nil, err
	}
	return created(viewUser(c, u))
}

func (c *call) knownUser(req userRequest) (*cf.User, error) {
	if req.GUID.V != "" {
		u, err := store.Users.Get(c.Tx, req.GUID.V)
		if store.IsNotFound(err) {
			return orgs.BareUser(req.GUID.V), nil
		}
		return u, err
	}
	_, err := store.Users.First(c.Tx, store.Query{Where: map[string][]string{"usernames": {req.Username.V}, "origins": {req.Origin.V}}})
	if err == nil {
		return nil, cf.Unprocessable("User with username '%s' and origin '%s' already exists.", req.Username.V, req.Origin.V)
	}
	if !store.IsNotFound(err) {
		return nil, err
	}
	return &cf.User{Username: req.Username.V, Origin: req.Origin.V}, nil
}

// user is the user of {guid}, if the actor sees it and is an admin.
func (c *call) user() (*cf.User, error) {
	u, err := store.Users.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	return u, c.PermitAdmin()
}

func updateUser(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	u, err := c.user()
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&u.Metadata); err != nil {
		return nil, err
	}
	if err := store.Users.Update(c.Tx, u); err != nil {
		return nil, err
	}
	return ok(viewUser(c, u))
}

// deleteUser takes from a user all that Cloud Controller keeps of one. Who can
// log in is the UAA's, which the CLI asks next to delete the user.
func deleteUser(c *call) (*response, error) {
	u, err := c.user()
	if err != nil {
		return nil, err
	}
	if err := store.Roles.DeleteBy(c.Tx, "user_guids", u.GUID); err != nil {
		return nil, err
	}
	if u.Origin == "" {
		err = store.Users.Delete(c.Tx, u.GUID)
	} else {
		u.Metadata = cf.Metadata{}
		err = store.Users.Update(c.Tx, u)
	}
	if err != nil {
		return nil, err
	}
	return c.accepted("user.delete", "users", u.GUID)
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

func listOrgUsers(c *call) (*response, error) {
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	roles, err := store.Roles.By(c.Tx, "all_organization_guids", o.GUID)
	if err != nil {
		return nil, err
	}
	return c.listHolders(roles)
}

func listSpaceUsers(c *call) (*response, error) {
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	roles, err := store.Roles.By(c.Tx, "space_guids", s.GUID)
	if err != nil {
		return nil, err
	}
	return c.listHolders(roles)
}

// listHolders lists the users who have one of the roles.
func (c *call) listHolders(roles []*cf.Role) (*response, error) {
	holders := control.GUIDs(roles, func(r *cf.Role) string { return r.UserGUID })
	return listRows(c, store.Users, viewUser, func(q *listQuery) error {
		if err := checkUserFilters(q); err != nil {
			return err
		}
		q.Where["guids"] = intersection(q.Where, "guids", holders)
		return nil
	})
}

// intersection is the values that a filter and a list have both; a filter that
// is not set has all.
func intersection(where map[string][]string, filter string, list []string) []string {
	wanted, set := where[filter]
	if !set {
		return list
	}
	return control.Without(wanted, func(g string) bool { return !slices.Contains(list, g) })
}
