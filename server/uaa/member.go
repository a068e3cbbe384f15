package uaa

import (
	"encoding/json"
	"net/http"
	"slices"

	"cupola/store"
)

// showMember is GET /Groups/{id}/members/{member}.
func (u scim) showMember(r *http.Request) (int, any, error) {
	g, err := u.group(r)
	if err != nil {
		return 0, nil, err
	}
	member := r.PathValue("member")
	if !slices.Contains(g.members, member) {
		return 0, nil, refuse(http.StatusNotFound, "member_not_found", "Member %s does not exist in group %s", member, g.GUID)
	}
	return http.StatusOK, viewMember(member), nil
}

// addMember gives a user a scope, which is in the tokens that the user gets
// from then on.
func (u scim) addMember(r *http.Request) (int, any, error) {
	var req struct {
		Value string `json:"value"`
		Type  string `json:"type"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Type != "" && req.Type != "USER" {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_member", "The members of groups are users")
	}
	err := u.changeScopes(r, req.Value, func(has []string, name string) ([]string, error) {
		if slices.Contains(userScopes, name) {
			return nil, refuse(http.StatusConflict, "member_already_exists", "Trying to add member to default group")
		}
		if slices.Contains(has, name) {
			return nil, refuse(http.StatusConflict, "member_already_exists", "%s is already part of the group: %s", req.Value, r.PathValue("id"))
		}
		return append(has, name), nil
	})
	return http.StatusCreated, viewMember(req.Value), err
}

// removeMember takes a scope from a user, and all tokens that may have it.
func (u scim) removeMember(r *http.Request) (int, any, error) {
	member := r.PathValue("member")
	err := u.changeScopes(r, member, func(has []string, name string) ([]string, error) {
		i := slices.Index(has, name)
		if i < 0 {
			return nil, refuse(http.StatusNotFound, "member_not_found", "Member %s does not exist in group %s", member, r.PathValue("id"))
		}
		return slices.Delete(has, i, i+1), nil
	})
	return http.StatusOK, viewMember(member), err
}

func (u scim) changeScopes(r *http.Request, member string, change func(has []string, name string) ([]string, error)) error {
	return u.store.Write(r.Context(), func(tx *store.Tx) error {
		g, err := findGroup(tx, r.PathValue("id"))
		if err != nil {
			return err
		}
		user, err := store.Users.Get(tx, member)
		if err != nil {
			return noUserWith(member, err)
		}
		more := len(user.Scopes)
		if user.Scopes, err = change(slices.Clone(user.Scopes), g.Name); err != nil {
			return err
		}
		if len(user.Scopes) < more {
			user.TokenSalt = newSalt()
		}
		return store.Users.Update(tx, user)
	})
}
