package uaa

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"cupola/runtime/guid"
	"cupola/store"
	"cupola/store/cf"
)

// otherScopes are groups that Cloud Controller and the UAA know besides those of
// every user and of admins.
var otherScopes = []string{"cloud_controller.admin_read_only", "cloud_controller.global_auditor", "clients.admin", "clients.read", "clients.write", "uaa.resource", "groups.update", "bosh.admin", "bosh.read"}

// knownScopes are the groups that there always are.
func knownScopes() []string { return slices.Concat(userScopes, AdminScopes, otherScopes) }

// groupSpace is where the IDs of those groups come from: they are always the same.
const groupSpace = "0c6d3f2e-7a51-4d0b-9a33-52c1c4a6f7d1"

func groupID(name string) string { return guid.Named(groupSpace, name) }

// group is a scope in SCIM's form: its members are the users who have it, and groups
// whose members have it, too. Every user has those of userScopes, which list no members.
type group struct {
	cf.Group
	fixed   bool // no admin made it
	members []member
}

// groups are all groups, by name. A scope that only some user has is one too.
func groups(made []*cf.Group, users []*cf.User, nested []*cf.NestedGroup) (all []*group) {
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
			g.members = append(g.members, member{user.GUID, typeUser})
		}
	}
	for _, n := range nested {
		g := find(n.Group)
		g.members = append(g.members, member{find(n.Member).GUID, typeGroup})
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *group) int { return cmp.Compare(a.Name, b.Name) })
}

func (g *group) view() doc {
	members := []doc{}
	for _, m := range g.members {
		members = append(members, m.view())
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
	nested, err := store.NestedGroups.All(tx)
	if err != nil {
		return nil, err
	}
	users, err := store.Users.All(tx)
	return groups(made, users, nested), err
}

// grouping is what users' documents show of groups.
type grouping struct {
	nesting
	made map[string]string // the IDs of the groups that admins made, by name
}

func (g grouping) id(name string) string { return cmp.Or(g.made[name], groupID(name)) }

func groupingOf(tx *store.Tx) (g grouping, err error) {
	if g.nesting, err = nestingOf(tx); err != nil {
		return g, err
	}
	made, err := store.Groups.All(tx)
	g.made = map[string]string{}
	for _, row := range made {
		g.made[row.Name] = row.GUID
	}
	return g, err
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
		list = append(list, resource{attributes{"id": {g.GUID}, "displayname": {g.Name}, "description": {g.Description}, "members.value": guidsOf(g.members)}, g.view})
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

// createGroup is POST /Groups. The name is a scope in the tokens of the members,
// through clients that have it among theirs.
func (u scim) createGroup(r *http.Request) (int, any, error) {
	req, err := readGroup(r)
	if err == nil {
		err = req.check()
	}
	if err != nil {
		return 0, nil, err
	}
	g := &group{Group: cf.Group{Name: req.DisplayName, Description: req.Description}}
	if err := u.store.Write(r.Context(), func(tx *store.Tx) error { return g.insert(tx, req.Members) }); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, g.view(), nil
}

// insert adds a new group with its members.
func (g *group) insert(tx *store.Tx, members []memberRequest) error {
	taken, err := nameTaken(tx, g)
	if err != nil {
		return err
	}
	if taken {
		return refuse(http.StatusConflict, "scim_resource_already_exists", "A group with displayName: %s already exists.", g.Name)
	}
	if err := store.Groups.Insert(tx, &g.Group); err != nil {
		return err
	}
	for _, m := range members {
		if err := asInvalid(m, g.add(tx, m)); err != nil {
			return err
		}
	}
	return nil
}

// nameTaken reports whether another group has the name of g.
func nameTaken(tx *store.Tx, g *group) (bool, error) {
	all, err := allGroups(tx)
	return slices.ContainsFunc(all, func(o *group) bool { return o.GUID != g.GUID && strings.EqualFold(o.Name, g.Name) }), err
}

// updateGroup is PUT /Groups/{id}, which replaces a group and its members.
func (u scim) updateGroup(r *http.Request) (int, any, error) {
	req, err := readGroup(r)
	if err != nil {
		return 0, nil, err
	}
	return u.replace(r, func(*group) (groupRequest, error) { return req, nil })
}

// patchGroup is PATCH /Groups/{id}, which changes what the request names.
func (u scim) patchGroup(r *http.Request) (int, any, error) {
	p, err := readPatch(r)
	if err != nil {
		return 0, nil, err
	}
	return u.replace(r, p.apply)
}

// replace makes a group what a request says.
func (u scim) replace(r *http.Request, request func(*group) (groupRequest, error)) (int, any, error) {
	match := r.Header.Get("If-Match")
	if match == "" {
		return 0, nil, refuse(http.StatusBadRequest, "scim", "Missing If-Match for %s", r.Method)
	}
	var g *group
	err := u.store.Write(r.Context(), func(tx *store.Tx) (err error) {
		if g, err = findGroup(tx, r.PathValue("id")); err != nil {
			return err
		}
		if err := g.matches(match, "Incorrect result size: expected 1, actual 0"); err != nil {
			return err
		}
		req, err := request(g)
		if err == nil {
			err = req.check()
		}
		if err != nil {
			return err
		}
		return revoking(tx, func() error { return g.change(tx, req) })
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, g.view(), nil
}

// change gives a group a name, a description and members. A group that is always there
// keeps its name.
func (g *group) change(tx *store.Tx, req groupRequest) error {
	if g.fixed && req.DisplayName != g.Name {
		return refuse(http.StatusBadRequest, "invalid_scim_resource", "The group %s cannot be renamed: Cloud Foundry needs it", g.Name)
	}
	if !g.fixed {
		if err := g.rename(tx, req.DisplayName); err != nil {
			return err
		}
		g.Description, g.Version = req.Description, g.Version+1
		if err := store.Groups.Update(tx, &g.Group); err != nil {
			return err
		}
	}
	return g.setMembers(tx, req.Members)
}

// rename gives a group another name; its members have the scope of that name.
func (g *group) rename(tx *store.Tx, name string) error {
	was := g.Name
	if g.Name = name; name == was {
		return nil
	}
	taken, err := nameTaken(tx, g)
	if err != nil {
		return err
	}
	if taken {
		return refuse(http.StatusBadRequest, "invalid_scim_resource", "A group with displayName: %s already exists", name)
	}
	for _, m := range g.members {
		if m.Type == typeGroup {
			continue
		}
		if err := changeScopes(tx, m.GUID, func(scopes []string) []string { scopes[slices.Index(scopes, was)] = name; return scopes }); err != nil {
			return err
		}
	}
	return store.NestedGroups.Rename(tx, was, name)
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
		if err := g.matches(cmp.Or(r.Header.Get("If-Match"), "*"), "error deleting group: "+g.GUID); err != nil {
			return err
		}
		return revoking(tx, func() error { return g.remove(tx) })
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, view, nil
}

func (g *group) remove(tx *store.Tx) error {
	if err := g.setMembers(tx, nil); err != nil {
		return err
	}
	if err := store.NestedGroups.Forget(tx, g.Name); err != nil {
		return err
	}
	return store.Groups.Delete(tx, g.GUID)
}
