package orgs

import (
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// NewUser is a user to be made known: by the GUID, or by name and origin.
type NewUser struct {
	GUID     change.Field[string] `json:"guid"`
	Username change.Field[string] `json:"username"`
	Origin   change.Field[string] `json:"origin"`
	Metadata *change.Metadata     `json:"metadata"`
}

// Validate lists what is wrong with the user, in Cloud Controller's words.
func (r NewUser) Validate() []string {
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

// AddUser makes a user known. The UAA's users and Cloud Controller's are one here,
// so that one the UAA made is known already.
func AddUser(c *control.Session, req NewUser) (*cf.User, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	u, err := knownUser(c, req)
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&u.Metadata); err != nil {
		return nil, err
	}
	return u, store.Users.Put(c.Tx, u)
}

func knownUser(c *control.Session, req NewUser) (*cf.User, error) {
	if req.GUID.V != "" {
		u, err := store.Users.Get(c.Tx, req.GUID.V)
		if store.IsNotFound(err) {
			return bareUser(req.GUID.V), nil
		}
		if err == nil && u.Origin == "" { // only Cloud Controller knows this one
			err = cf.Unprocessable("User with guid '%s' already exists.", u.GUID)
		}
		return u, err
	}
	_, err := store.Users.First(c.Tx, store.Query{Where: map[string][]string{"usernames": {req.Username.V}, "origins": {req.Origin.V}}})
	if err == nil {
		return nil, cf.Unprocessable("User with username '%s' and origin '%s' already exists.", req.Username.V, req.Origin.V)
	}
	return &cf.User{Username: req.Username.V, Origin: req.Origin.V}, control.IfFound(err)
}

// DeleteUser takes from a user all that Cloud Controller keeps of one. Who can log
// in is the UAA's, which the CLI asks next to delete the user.
func DeleteUser(c *control.Session, u *cf.User) error {
	if err := store.Roles.DeleteBy(c.Tx, "user_guids", u.GUID); err != nil {
		return err
	}
	if u.Origin == "" {
		return store.Users.Delete(c.Tx, u.GUID)
	}
	u.Metadata = cf.Metadata{}
	return store.Users.Update(c.Tx, u)
}

// PresentationName is what users are called: by their GUID, where that is all that is known.
func PresentationName(u *cf.User) string {
	if u.Origin == "" {
		return u.GUID
	}
	return u.Username
}

// bareUser is a user of whom only the GUID is known.
func bareUser(guid string) *cf.User {
	return &cf.User{Resource: cf.Resource{GUID: guid}, Username: guid}
}
