package uaa

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"cupola/runtime/guid"
	"cupola/store"
	"cupola/store/cf"
)

// otherScopes are groups that Cloud Controller and the UAA know beside those of
// every user and of admins.
var otherScopes = []string{"cloud_controller.admin_read_only", "cloud_controller.global_auditor", "clients.admin", "clients.read", "clients.write", "uaa.resource"}

// groupSpace is where the IDs of groups come from: they are always the same.
const groupSpace = "0c6d3f2e-7a51-4d0b-9a33-52c1c4a6f7d1"

func groupID(name string) string { return guid.Named(groupSpace, name) }

// group is a scope in SCIM's form: its members are the users who have it.
// Every user has those of userScopes, which list no members.
type group struct {
	name    string
	members []string
}

// groups are all groups, by name. A scope that only some user has is one too.
func groups(users []*cf.User) (all []*group) {
	byName := map[string]*group{}
	for _, name := range slices.Concat(userScopes, AdminScopes, otherScopes) {
		byName[name] = &group{name: name}
	}
	for _, user := range users {
		for _, name := range user.Scopes {
			if byName[name] == nil {
				byName[name] = &group{name: name}
			}
			byName[name].members = append(byName[name].members, user.GUID)
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *group) int { return cmp.Compare(a.name, b.name) })
}

func viewMember(guid string) doc { return doc{"value": guid, "type": "USER", "origin": Origin} }

func (g *group) view() doc {
	members := []doc{}
	for _, m := range g.members {
		members = append(members, viewMember(m))
	}
	return doc{"id": groupID(g.name), "displayName": g.name, "zoneId": "uaa", "members": members, "meta": doc{"version": 0}, "schemas": scimSchemas}
}

// readGroups are the groups at a moment.
func (u scim) readGroups(r *http.Request) (all []*group, err error) {
	err = u.store.Read(r.Context(), func(tx *store.Tx) error {
		users, err := store.Users.All(tx)
		all = groups(users)
		return err
	})
	return all, err
}

func (u scim) listGroups(r *http.Request) (int, any, error) {
	all, err := u.readGroups(r)
	if err != nil {
		return 0, nil, err
	}
	var list []resource
	for _, g := range all {
		list = append(list, resource{attributes{"id": {groupID(g.name)}, "displayname": {g.name}, "members.value": g.members}, g.view})
	}
	return listPage(r, list)
}

// group is the group of the request.
func (u scim) group(r *http.Request) (*group, error) {
	all, err := u.readGroups(r)
	if err != nil {
		return nil, err
	}
	for _, g := range all {
		if groupID(g.name) == r.PathValue("id") {
			return g, nil
		}
	}
	return nil, refuse(http.StatusNotFound, "scim_resource_not_found", "Group %s does not exist", r.PathValue("id"))
}

func (u scim) showGroup(r *http.Request) (int, any, error) {
	g, err := u.group(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, g.view(), nil
}

func (u scim) listMembers(r *http.Request) (int, any, error) {
	status, body, err := u.showGroup(r)
	if err != nil {
		return 0, nil, err
	}
	return status, body.(doc)["members"], nil
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
		if slices.Contains(has, name) || slices.Contains(userScopes, name) {
			return nil, refuse(http.StatusConflict, "member_already_exists", "The member is in the group already")
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
			return nil, refuse(http.StatusNotFound, "scim_resource_not_found", "Member %s does not exist in group %s", member, name)
		}
		return slices.Delete(has, i, i+1), nil
	})
	return http.StatusOK, viewMember(member), err
}

func (u scim) changeScopes(r *http.Request, member string, change func(has []string, name string) ([]string, error)) error {
	g, err := u.group(r)
	if err != nil {
		return err
	}
	return u.store.Write(r.Context(), func(tx *store.Tx) error {
		user, err := store.Users.Get(tx, member)
		if err != nil {
			return noUserWith(member, err)
		}
		more := len(user.Scopes)
		if user.Scopes, err = change(slices.Clone(user.Scopes), g.name); err != nil {
			return err
		}
		if len(user.Scopes) < more {
			user.TokenSalt = newSalt()
		}
		return store.Users.Update(tx, user)
	})
}
