package uaa

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"cupola/runtime/pattern"
	"cupola/store"
	"cupola/store/cf"
)

// scim serves users and groups, as SCIM has them.
type scim struct{ *UAA }

// viewUser is a user in SCIM's form. A user is in the groups around the user's own, too
// (UAA: ScimUserEndpoints.syncGroups).
func viewUser(u *cf.User, known grouping) doc {
	memberships, direct := []doc{}, slices.Concat(userScopes, u.Scopes)
	for _, name := range slices.Concat(userScopes, known.around(u.Scopes)) {
		kind := "INDIRECT"
		if slices.Contains(direct, name) {
			kind = "DIRECT"
		}
		memberships = append(memberships, doc{"value": known.id(name), "display": name, "type": kind})
	}
	return doc{"groups": memberships, "id": u.GUID, "userName": u.Username, "origin": u.Origin, "active": true, "verified": true, "zoneId": "uaa",
		"name": doc{"givenName": u.GivenName, "familyName": u.FamilyName}, "emails": []doc{{"value": u.Email, "primary": true}},
		"meta": doc{"version": 0, "created": u.CreatedAt, "lastModified": u.UpdatedAt}, "schemas": scimSchemas}
}

func (u scim) listUsers(r *http.Request) (int, any, error) {
	var all []resource
	err := u.store.Read(r.Context(), func(tx *store.Tx) error {
		users, err := store.Users.By(tx, "origins", Origin)
		if err != nil {
			return err
		}
		known, err := groupingOf(tx)
		for _, user := range users {
			all = append(all, resource{userAttributes(user), func() doc { return viewUser(user, known) }})
		}
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	return listPage(r, all)
}

func userAttributes(u *cf.User) attributes {
	email, given, family := []string{u.Email}, []string{u.GivenName}, []string{u.FamilyName}
	return attributes{"id": {u.GUID}, "username": {u.Username}, "origin": {u.Origin}, "active": {"true"}, "emails.value": email, "email": email,
		"name.givenname": given, "givenname": given, "name.familyname": family, "familyname": family}
}

// maxUsername is UAA's limit of a name, in bytes.
const maxUsername = 255

type userRequest struct {
	UserName string `json:"userName"`
	Password string `json:"password"`
	Origin   string `json:"origin"`
	Name     struct {
		GivenName  string `json:"givenName"`
		FamilyName string `json:"familyName"`
	} `json:"name"`
	Emails []struct {
		Value string `json:"value"`
	} `json:"emails"`
}

// usernamePattern is ScimUtils.validate's; the message quotes that, which has a sign
// twice.
var usernamePattern = pattern.Lazy(`^[\p{L}+0-9\-_.@'!]+$`)

// fault says in UAA's words what is wrong with a new user (ScimUtils.validate,
// JdbcScimUserProvisioning.checkOrigin); "" for nothing.
func (req *userRequest) fault() string {
	switch {
	case strings.TrimSpace(req.UserName) == "":
		return "A username must be provided."
	case req.Origin != "" && req.Origin != Origin:
		return "Invalid origin " + req.Origin + " in Identity Zone uaa"
	case !usernamePattern().MatchString(req.UserName):
		return `Username must match pattern: [\p{L}+0-9+\-_.@'!]+`
	case len(req.UserName) > maxUsername:
		return fmt.Sprintf("Username has more than %d bytes.", maxUsername)
	case len(req.Emails) > 1:
		return "Exactly one email must be provided."
	case len(req.Emails) == 1 && req.Emails[0].Value == "":
		return "An email must be provided."
	}
	return ""
}

func (u scim) createUser(r *http.Request) (int, any, error) {
	var req userRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_scim_resource", "The user could not be read")
	}
	if fault := req.fault(); fault != "" {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_scim_resource", "%s", fault)
	}
	if err := u.policy.Load().check(req.Password); err != nil {
		return 0, nil, err
	}
	user := &cf.User{Username: req.UserName, Origin: Origin, GivenName: req.Name.GivenName, FamilyName: req.Name.FamilyName, Email: req.UserName}
	if len(req.Emails) > 0 {
		user.Email = req.Emails[0].Value
	}
	var err error
	if user.PasswordHash, err = hash(req.Password); err != nil {
		return 0, nil, err
	}
	err = u.store.Write(r.Context(), func(tx *store.Tx) error { return store.Users.Insert(tx, user) })
	if store.IsTaken(err) {
		return 0, nil, refuse(http.StatusConflict, "scim_resource_already_exists", "Username already in use: %s", req.UserName)
	}
	return http.StatusCreated, viewUser(user, grouping{}), err
}

// updateUser is PUT /Users/{id}: other names and another email. The password stays
// (UAA: ScimUserEndpoints.updateUser). All users have version 0.
func (u scim) updateUser(r *http.Request) (int, any, error) {
	switch version := strings.Trim(r.Header.Get("If-Match"), `"`); version {
	case "":
		return 0, nil, refuse(http.StatusBadRequest, "scim", "Missing If-Match for PUT")
	case "*", "0":
	default:
		return 0, nil, refuse(http.StatusConflict, "scim_resource_conflict", "Attempt to update a user (%s) with wrong version: expected=0 but found=%s", r.PathValue("id"), version)
	}
	var req userRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_scim_resource", "The user could not be read")
	}
	if fault := req.fault(); fault != "" {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_scim_resource", "%s", fault)
	}
	user, err := u.changeUser(r, &req)
	if store.IsTaken(err) {
		return 0, nil, refuse(http.StatusConflict, "scim_resource_already_exists", "Username already in use: %s", req.UserName)
	}
	if err != nil {
		return 0, nil, notFound(r, err)
	}
	view, err := u.view(r, user)
	return http.StatusOK, view, err
}

func (u scim) changeUser(r *http.Request, req *userRequest) (user *cf.User, err error) {
	err = u.store.Write(r.Context(), func(tx *store.Tx) error {
		if user, err = store.Users.Get(tx, r.PathValue("id")); err != nil {
			return err
		}
		if user.Username == adminUser && req.UserName != adminUser {
			return refuse(http.StatusBadRequest, "invalid_scim_resource", "The user admin cannot be renamed: its password is the daemon's --admin-password")
		}
		user.Username, user.GivenName, user.FamilyName = req.UserName, req.Name.GivenName, req.Name.FamilyName
		if len(req.Emails) > 0 {
			user.Email = req.Emails[0].Value
		}
		return store.Users.Update(tx, user)
	})
	return user, err
}

// adminUser is the name of the first user, whom the client admin speaks for.
const adminUser = "admin"

func (u scim) showUser(r *http.Request) (int, any, error) {
	id, err := u.bearer(r)
	if err != nil {
		return 0, nil, err
	}
	if id.UserGUID != r.PathValue("id") {
		if _, err := u.bearer(r, "scim.read"); err != nil {
			return 0, nil, err
		}
	}
	user, err := u.user(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, nil, notFound(r, err)
	}
	view, err := u.view(r, user)
	return http.StatusOK, view, err
}

func (u scim) view(r *http.Request, user *cf.User) (view doc, err error) {
	err = u.store.Read(r.Context(), func(tx *store.Tx) error {
		known, err := groupingOf(tx)
		view = viewUser(user, known)
		return err
	})
	return view, err
}

func notFound(r *http.Request, err error) error { return noUserWith(r.PathValue("id"), err) }

func noUserWith(id string, err error) error {
	if store.IsNotFound(err) {
		return refuse(http.StatusNotFound, "scim_resource_not_found", "User %s does not exist", id)
	}
	return err
}

// unlock is PATCH /Users/{id}/status, with which an admin ends a lockout.
func (u scim) unlock(r *http.Request) (int, any, error) {
	var req struct {
		Locked *bool `json:"locked"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Locked == nil || *req.Locked {
		return 0, nil, refuse(http.StatusBadRequest, "scim", "Cannot set user account to locked. User accounts only become locked through exceeding the allowed failed login attempts.")
	}
	err := u.store.Write(r.Context(), func(tx *store.Tx) error {
		user, err := store.Users.Get(tx, r.PathValue("id"))
		if err != nil {
			return notFound(r, err)
		}
		return store.LoginFailures.Forget(tx, user.Username)
	})
	return http.StatusOK, doc{"locked": false}, err
}

func (u scim) deleteUser(r *http.Request) (int, any, error) {
	user, err := u.user(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, nil, notFound(r, err)
	}
	view, err := u.view(r, user)
	if err != nil {
		return 0, nil, err
	}
	err = u.store.Write(r.Context(), func(tx *store.Tx) error { return store.Users.Delete(tx, user.GUID) })
	return http.StatusOK, view, err
}

// passwordRequest is UAA's PasswordChangeRequest. OldPassword is nil where none is given.
type passwordRequest struct {
	OldPassword *string `json:"oldPassword"`
	Password    string  `json:"password"`
}

// changePassword is PUT /Users/{id}/password (UAA: PasswordChangeEndpoint).
func (u scim) changePassword(r *http.Request) (int, any, error) {
	id, err := u.bearer(r)
	if err != nil {
		return 0, nil, err
	}
	var req passwordRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_password", "The request could not be read")
	}
	user, err := u.user(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, nil, notFound(r, err)
	}
	if err := u.mayChangePassword(r, id, user, req.OldPassword); err != nil {
		return 0, nil, err
	}
	same, err := u.isPassword(r, user, req.Password)
	if err != nil {
		return 0, nil, err
	}
	if same {
		return 0, nil, refuse(http.StatusUnprocessableEntity, "invalid_password", "Your new password cannot be the same as the old password.")
	}
	if err := u.policy.Load().check(req.Password); err != nil {
		return 0, nil, err
	}
	if err := u.setPassword(r.Context(), user.GUID, req.Password); err != nil {
		return 0, nil, notFound(r, err)
	}
	return http.StatusOK, doc{"status": "ok", "message": "password updated"}, nil
}

// mayChangePassword refuses users who do not know their own password, admins too. Only
// admins change another's, without the old one; one that they give must be right (UAA:
// PasswordChangeEndpoint, JdbcScimUserProvisioning.changePassword).
func (u scim) mayChangePassword(r *http.Request, id cf.Identity, user *cf.User, old *string) error {
	_, notAdmin := u.bearer(r, "uaa.admin")
	own := id.UserGUID == user.GUID
	switch {
	case notAdmin != nil && !own:
		return notAdmin
	case own && notAdmin != nil && (old == nil || *old == ""):
		return refuse(http.StatusBadRequest, "invalid_password", "Previous password is required")
	case own && (old == nil || *old == ""):
		return refuse(http.StatusBadRequest, "invalid_password", "Previous password is required even for admin")
	case old == nil:
		return nil
	}
	if _, err := u.byPassword(r, user.Username, *old); err != nil {
		return refuse(http.StatusUnauthorized, "unauthorized", "Old password is incorrect")
	}
	return nil
}

func (u scim) setPassword(ctx context.Context, guid, password string) error {
	hashed, err := hash(password)
	if err != nil {
		return err
	}
	return u.store.Write(ctx, func(tx *store.Tx) error {
		user, err := store.Users.Get(tx, guid)
		if err != nil {
			return err
		}
		user.PasswordHash = hashed
		return store.Users.Update(tx, user)
	})
}
