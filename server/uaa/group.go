package uaa

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"cupola/runtime/guid"
	"cupola/store"
	"cupola/store/cf"
)

// otherScopes are groups that Cloud Controller and the UAA know beside those of
// every user and of admins.
var otherScopes = []string{"cloud_controller.admin_read_only", "cloud_controller.global_auditor", "clients.admin", "clients.read", "clients.write", "uaa.resource", "groups.update"}

// knownScopes are the groups that there always are.
func knownScopes() []string { return slices.Concat(userScopes, AdminScopes, otherScopes) }

// groupSpace is where the IDs of those groups come from: they are always the same.
const groupSpace = "0c6d3f2e-7a51-4d0b-9a33-52c1c4a6f7d1"

func groupID(name string) string { return guid.Named(groupSpace, name) }

// group is a scope in SCIM's form: its members are the users who have it.
// Every user has those of userScopes, which list no members.
type group struct {
	cf.Group
	fixed   bool // no admin made it
	members []string
}

// groups are all groups, by name. A scope that only some user has is one too.
func groups(made []*cf.Group, users []*cf.User) (all []*group) {
	byName := map[string]*group{}
	for _, g := range made {
		byName[g.Name] = &group{Group: *g}
	}
	find := func(name string) *group {
		if byName[name] == nil {
			byName[name] = &group{Group: cf.Group{Resource: cf.Resource{GUID: groupID(name)}, Name: name}, fixed: true}
		}
		return byName[name]
	}
	for _, name := range knownScopes() {
		find(name)
	}
	for _, user := range users {
		for _, name := range user.Scopes {
			g := find(name)
			g.members = append(g.members, user.GUID)
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *group) int { return cmp.Compare(a.Name, b.Name) })
}

func viewMember(guid string) doc { return doc{"value": guid, "type": "USER", "origin": Origin} }

func (g *group) view() doc {
	members := []doc{}
	for _, m := range g.members {
		members = append(members, viewMember(m))
	}
	meta := doc{"version": g.Version}
	if !g.fixed {
		meta["created"], meta["lastModified"] = g.CreatedAt, g.UpdatedAt
	}
	view := doc{"id": g.GUID, "displayName": g.Name, "zoneId": "uaa", "members": members, "meta": meta, "schemas": scimSchemas}
	if g.Description != "" {
		view["description"] = g.Description
	}
	return view
}

// allGroups are the groups in a transaction.
func allGroups(tx *store.Tx) ([]*group, error) {
	made, err := store.Groups.All(tx)
	if err != nil {
		return nil, err
	}
	users, err := store.Users.All(tx)
	return groups(made, users), err
}

// madeGroups are the IDs of the groups that admins made, by name.
func madeGroups(tx *store.Tx) (map[string]string, error) {
	made, err := store.Groups.All(tx)
	ids := map[string]string{}
	for _, g := range made {
		ids[g.Name] = g.GUID
	}
	return ids, err
}

func (u scim) listGroups(r *http.Request) (int, any, error) {
	var all []*group
	err := u.store.Read(r.Context(), func(tx *store.Tx) (err error) {
		all, err = allGroups(tx)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	var list []resource
	for _, g := range all {
		list = append(list, resource{attributes{"id": {g.GUID}, "displayname": {g.Name}, "description": {g.Description}, "members.value": g.members}, g.view})
	}
	return listPage(r, list)
}

// findGroup is the group with an ID.
func findGroup(tx *store.Tx, id string) (*group, error) {
	all, err := allGroups(tx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(g *group) bool { return g.GUID == id }); i >= 0 {
		return all[i], nil
	}
	return nil, refuse(http.StatusNotFound, "scim_resource_not_found", "Group %s does not exist", id)
}

func (u scim) group(r *http.Request) (g *group, err error) {
	err = u.store.Read(r.Context(), func(tx *store.Tx) error {
		g, err = findGroup(tx, r.PathValue("id"))
		return err
	})
	return g, err
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

// groupRequest is a group as clients write it.
type groupRequest struct {
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
	Members     []struct {
		Value string `json:"value"`
		Type  string `json:"type"`
	} `json:"members"`
}

func readGroup(r *http.Request) (req groupRequest, err error) {
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return req, refuse(http.StatusBadRequest, "invalid_scim_resource", "The group could not be read")
	}
	if strings.TrimSpace(req.DisplayName) == "" || len(req.DisplayName) > maxUsername || strings.ContainsAny(req.DisplayName, " \t\r\n") {
		return req, refuse(http.StatusBadRequest, "invalid_scim_resource", "A displayName of at most %d bytes without white space must be provided.", maxUsername)
	}
	return req, nil
}

// createGroup is POST /Groups. The name is a scope in the tokens of the members,
// through clients that have it among theirs.
func (u scim) createGroup(r *http.Request) (int, any, error) {
	req, err := readGroup(r)
	if err != nil {
		return 0, nil, err
	}
	var g *group
	err = u.store.Write(r.Context(), func(tx *store.Tx) error {
		all, err := allGroups(tx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(g *group) bool { return strings.EqualFold(g.Name, req.DisplayName) }) {
			return refuse(http.StatusConflict, "scim_resource_already_exists", "A group with displayName: %s already exists.", req.DisplayName)
		}
		g = &group{Group: cf.Group{Name: req.DisplayName, Description: req.Description}}
		if err := store.Groups.Insert(tx, &g.Group); err != nil {
			return err
		}
		return setMembers(tx, g, req)
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, g.view(), nil
}

// updateGroup is PUT /Groups/{id}, which replaces a group and its members.
func (u scim) updateGroup(r *http.Request) (int, any, error) {
	req, err := readGroup(r)
	if err != nil {
		return 0, nil, err
	}
	match := strings.Trim(strings.TrimSpace(r.Header.Get("If-Match")), `"`)
	if match == "" {
		return 0, nil, refuse(http.StatusBadRequest, "scim", "Missing If-Match for PUT")
	}
	var g *group
	err = u.store.Write(r.Context(), func(tx *store.Tx) error {
		if g, err = findGroup(tx, r.PathValue("id")); err != nil {
			return err
		}
		if err := g.change(tx, req, match); err != nil {
			return err
		}
		return setMembers(tx, g, req)
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, g.view(), nil
}

// change gives a group a name and a description. Its members get the new scope by
// setMembers. A group that is always there keeps its name.
func (g *group) change(tx *store.Tx, req groupRequest, match string) error {
	if v, err := json.Marshal(g.Version); match != "*" && (err != nil || string(v) != match) {
		return refuse(http.StatusConflict, "scim", "Incorrect result size: expected 1, actual 0")
	}
	if g.fixed {
		if req.DisplayName != g.Name {
			return refuse(http.StatusBadRequest, "invalid_scim_resource", "The group %s cannot be renamed: Cloud Foundry needs it", g.Name)
		}
		return nil
	}
	if req.DisplayName != g.Name {
		all, err := allGroups(tx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(o *group) bool { return o.GUID != g.GUID && strings.EqualFold(o.Name, req.DisplayName) }) {
			return refuse(http.StatusBadRequest, "invalid_scim_resource", "A group with displayName: %s already exists", req.DisplayName)
		}
		if err := setMembers(tx, g, groupRequest{}); err != nil {
			return err
		}
	}
	g.Name, g.Description, g.Version = req.DisplayName, req.Description, g.Version+1
	return store.Groups.Update(tx, &g.Group)
}

// setMembers makes those of a request a group's members, and no other users.
func setMembers(tx *store.Tx, g *group, req groupRequest) error {
	var wanted []string
	for _, m := range req.Members {
		if m.Type != "" && m.Type != "USER" {
			return refuse(http.StatusBadRequest, "invalid_scim_resource", "Invalid group member: %s", m.Value)
		}
		if !slices.Contains(wanted, m.Value) {
			wanted = append(wanted, m.Value)
		}
	}
	for _, guid := range wanted {
		if slices.Contains(g.members, guid) {
			continue
		}
		user, err := store.Users.Get(tx, guid)
		if store.IsNotFound(err) {
			return refuse(http.StatusBadRequest, "invalid_scim_resource", "Invalid group member: %s", guid)
		}
		if err != nil {
			return err
		}
		user.Scopes = append(user.Scopes, g.Name)
		if err := store.Users.Update(tx, user); err != nil {
			return err
		}
	}
	for _, guid := range g.members {
		if slices.Contains(wanted, guid) {
			continue
		}
		if err := takeScope(tx, guid, g.Name); err != nil {
			return err
		}
	}
	g.members = wanted
	return nil
}

// takeScope takes a scope from a user, and all tokens that may have it.
func takeScope(tx *store.Tx, guid, scope string) error {
	user, err := store.Users.Get(tx, guid)
	if err != nil {
		return err
	}
	user.Scopes, user.TokenSalt = slices.DeleteFunc(user.Scopes, func(s string) bool { return s == scope }), newSalt()
	return store.Users.Update(tx, user)
}

// deleteGroup is DELETE /Groups/{id}. Its members lose the scope.
func (u scim) deleteGroup(r *http.Request) (int, any, error) {
	var view doc
	err := u.store.Write(r.Context(), func(tx *store.Tx) error {
		g, err := findGroup(tx, r.PathValue("id"))
		if err != nil {
			return err
		}
		if view = g.view(); g.fixed {
			return refuse(http.StatusBadRequest, "scim", "The group %s cannot be deleted: Cloud Foundry needs it", g.Name)
		}
		if err := setMembers(tx, g, groupRequest{}); err != nil {
			return err
		}
		return store.Groups.Delete(tx, g.GUID)
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, view, nil
}
