package uaa

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"cupola/store"
	"cupola/store/cf"
)

func viewUser(u *cf.User) doc {
	return doc{"id": u.GUID, "userName": u.Username, "origin": u.Origin, "active": true, "verified": true, "zoneId": "uaa",
		"name": doc{"givenName": u.GivenName, "familyName": u.FamilyName}, "emails": []doc{{"value": u.Email, "primary": true}},
		"meta": doc{"version": 0, "created": u.CreatedAt, "lastModified": u.UpdatedAt}, "schemas": []string{"urn:scim:schemas:core:1.0"}}
}

// filterPattern is what of SCIM's filters the CLI uses: a eq "b" and c eq "d".
var filterPattern = regexp.MustCompile(`(?i)^\s*(username|origin|id)\s+eq\s+"((?:[^"\\]|\\.)*)"\s*(?:and\s+(.*))?$`)

var filterNames = map[string]string{"username": "usernames", "origin": "origins", "id": "guids"}

func parseFilter(text string) (map[string][]string, error) {
	where := map[string][]string{}
	for text != "" {
		m := filterPattern.FindStringSubmatch(text)
		if m == nil {
			return nil, refuse(http.StatusBadRequest, "invalid_filter", "Invalid filter expression: [%s]", text)
		}
		value := strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(m[2])
		where[filterNames[strings.ToLower(m[1])]] = []string{value}
		text = m[3]
	}
	return where, nil
}

func (u *UAA) listUsers(r *http.Request) (int, any, error) {
	if _, err := u.bearer(r, "scim.read"); err != nil {
		return 0, nil, err
	}
	where, err := parseFilter(r.URL.Query().Get("filter"))
	if err != nil {
		return 0, nil, err
	}
	found := []doc{}
	err = u.store.Read(r.Context(), func(tx *store.Tx) error {
		users, _, err := store.Users.List(tx, store.Query{Where: where})
		for _, user := range users {
			found = append(found, viewUser(user))
		}
		return err
	})
	return http.StatusOK, doc{"resources": found, "startIndex": 1, "itemsPerPage": 100, "totalResults": len(found), "schemas": []string{"urn:scim:schemas:core:1.0"}}, err
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

func (u *UAA) createUser(r *http.Request) (int, any, error) {
	if _, err := u.bearer(r, "scim.write"); err != nil {
		return 0, nil, err
	}
	var req userRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || strings.TrimSpace(req.UserName) == "" || len(req.UserName) > maxUsername {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_scim_resource", "A username must be provided.")
	}
	if req.Origin != "" && req.Origin != Origin {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_scim_resource", "Users are of the origin uaa here, not %q", req.Origin)
	}
	if err := u.policy.check(req.Password); err != nil {
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
	return http.StatusCreated, viewUser(user), err
}

func (u *UAA) showUser(r *http.Request) (int, any, error) {
	id, err := u.bearer(r, "")
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
	return http.StatusOK, viewUser(user), nil
}

func notFound(r *http.Request, err error) error {
	if store.IsNotFound(err) {
		return refuse(http.StatusNotFound, "scim_resource_not_found", "User %s does not exist", r.PathValue("id"))
	}
	return err
}

func (u *UAA) deleteUser(r *http.Request) (int, any, error) {
	if _, err := u.bearer(r, "scim.write"); err != nil {
		return 0, nil, err
	}
	user, err := u.user(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, nil, notFound(r, err)
	}
	err = u.store.Write(r.Context(), func(tx *store.Tx) error { return store.Users.Delete(tx, user.GUID) })
	return http.StatusOK, viewUser(user), err
}

// changePassword wants the old password, but of an admin.
func (u *UAA) changePassword(r *http.Request) (int, any, error) {
	id, err := u.bearer(r, "")
	if err != nil {
		return 0, nil, err
	}
	var req struct {
		OldPassword string `json:"oldPassword"`
		Password    string `json:"password"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_password", "The request could not be read")
	}
	if err := u.policy.check(req.Password); err != nil {
		return 0, nil, err
	}
	user, err := u.user(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, nil, notFound(r, err)
	}
	if _, notAdmin := u.bearer(r, "uaa.admin"); notAdmin != nil {
		if id.UserGUID != user.GUID {
			return 0, nil, refuse(http.StatusForbidden, "insufficient_scope", "Insufficient scope for this resource")
		}
		if _, err := u.byPassword(r, user.Username, req.OldPassword); err != nil {
			return 0, nil, refuse(http.StatusUnauthorized, "unauthorized", "Old password is incorrect")
		}
	}
	if err := u.setPassword(r.Context(), user.GUID, req.Password); err != nil {
		return 0, nil, notFound(r, err)
	}
	return http.StatusOK, doc{"status": "ok", "message": "password updated"}, nil
}

func (u *UAA) setPassword(ctx context.Context, guid, password string) error {
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
