package uaa

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"cupola/store"
	"cupola/store/cf"
)

// The types of members of groups.
const (
	typeUser  = "USER"
	typeGroup = "GROUP"
)

// member is a member of a group.
type member struct {
	GUID string
	Type string
}

func (m member) view() doc { return doc{"value": m.GUID, "type": m.Type, "origin": Origin} }

func guidsOf(members []member) (guids []string) {
	for _, m := range members {
		guids = append(guids, m.GUID)
	}
	return guids
}

// member is the member with an ID.
func (g *group) member(id string) (member, error) {
	if i := slices.Index(guidsOf(g.members), id); i >= 0 {
		return g.members[i], nil
	}
	return member{}, refuse(http.StatusNotFound, "member_not_found", "Member %s does not exist in group %s", id, g.GUID)
}

// listMembers is GET /Groups/{id}/members; returnEntities=true shows the users and groups
// with the memberships.
func (u scim) listMembers(r *http.Request) (int, any, error) {
	entities := r.URL.Query().Get("returnEntities") == "true"
	views := []doc{}
	err := u.store.Read(r.Context(), func(tx *store.Tx) error {
		g, err := findGroup(tx, r.PathValue("id"))
		if err != nil {
			return err
		}
		for _, m := range g.members {
			view := m.view()
			if entities {
				if view["entity"], err = m.entity(tx); err != nil {
					return err
				}
			}
			views = append(views, view)
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, views, nil
}

// entity is the user or group that a member is, without its groups or members.
func (m member) entity(tx *store.Tx) (doc, error) {
	if m.Type == typeGroup {
		g, err := findGroup(tx, m.GUID)
		if err != nil {
			return nil, err
		}
		view := g.view()
		delete(view, "members")
		return view, nil
	}
	user, err := store.Users.Get(tx, m.GUID)
	if err != nil {
		return nil, err
	}
	view := viewUser(user, grouping{})
	delete(view, "groups")
	return view, nil
}

// showMember is GET /Groups/{id}/members/{member}.
func (u scim) showMember(r *http.Request) (int, any, error) {
	g, err := u.group(r)
	if err != nil {
		return 0, nil, err
	}
	m, err := g.member(r.PathValue("member"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, m.view(), nil
}

// addMember is POST /Groups/{id}/members: a user, or the members of a group, get the
// scope, which is in the tokens that they get from then on.
func (u scim) addMember(r *http.Request) (int, any, error) {
	var req memberRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_scim_resource", "The group member could not be read")
	}
	if err := req.check(); err != nil {
		return 0, nil, err
	}
	err := u.store.Write(r.Context(), func(tx *store.Tx) error {
		g, err := findGroup(tx, r.PathValue("id"))
		if err != nil {
			return err
		}
		return g.add(tx, req)
	})
	return http.StatusCreated, req.member().view(), err
}

// removeMember is DELETE /Groups/{id}/members/{member}. Tokens of users who lose a scope
// by that are revoked.
func (u scim) removeMember(r *http.Request) (int, any, error) {
	var m member
	err := u.store.Write(r.Context(), func(tx *store.Tx) error {
		g, err := findGroup(tx, r.PathValue("id"))
		if err != nil {
			return err
		}
		if m, err = g.member(r.PathValue("member")); err != nil {
			return err
		}
		return revoking(tx, func() error { return g.end(tx, m) })
	})
	return http.StatusOK, m.view(), err
}

// add adds a member to a group (UAA: JdbcScimGroupMembershipManager.addMember).
func (g *group) add(tx *store.Tx, req memberRequest) error {
	m := req.member()
	switch {
	case slices.Contains(userScopes, g.Name):
		return refuse(http.StatusConflict, "member_already_exists", "Trying to add member to default group")
	case m.GUID == "", req.Origin != nil && *req.Origin == "":
		return refuse(http.StatusBadRequest, "invalid_scim_resource", "group-id, member-id, origin and member-type must be non-empty")
	case m.GUID == g.GUID:
		return refuse(http.StatusBadRequest, "invalid_scim_resource", "trying to nest group within itself, aborting")
	case slices.Contains(guidsOf(g.members), m.GUID):
		return refuse(http.StatusConflict, "member_already_exists", "%s is already part of the group: %s", m.GUID, g.GUID)
	}
	g.members = append(g.members, m)
	if m.Type == typeUser {
		return changeScopes(tx, m.GUID, func(scopes []string) []string { return append(scopes, g.Name) })
	}
	inner, err := findGroup(tx, m.GUID)
	if err != nil {
		return err
	}
	return store.NestedGroups.Add(tx, cf.NestedGroup{Group: g.Name, Member: inner.Name})
}

// end ends the membership of a member.
func (g *group) end(tx *store.Tx, m member) error {
	g.members = slices.DeleteFunc(g.members, func(have member) bool { return have == m })
	if m.Type == typeUser {
		return changeScopes(tx, m.GUID, func(scopes []string) []string {
			return slices.DeleteFunc(scopes, func(s string) bool { return s == g.Name })
		})
	}
	inner, err := findGroup(tx, m.GUID)
	if err != nil {
		return err
	}
	return store.NestedGroups.Remove(tx, cf.NestedGroup{Group: g.Name, Member: inner.Name})
}

// setMembers makes those of a request a group's members, and no others (UAA:
// JdbcScimGroupMembershipManager.updateOrAddMembers).
func (g *group) setMembers(tx *store.Tx, wanted []memberRequest) error {
	had := slices.Clone(g.members)
	for _, m := range had {
		if slices.ContainsFunc(wanted, func(req memberRequest) bool { return req.member() == m }) {
			continue
		}
		if err := g.end(tx, m); err != nil {
			return err
		}
	}
	for _, req := range wanted {
		if slices.Contains(had, req.member()) {
			continue
		}
		if err := g.add(tx, req); err != nil {
			return ofUpdate(err)
		}
	}
	return nil
}

// asInvalid is how a new group's member is refused.
func asInvalid(m memberRequest, err error) error {
	if _, is := errors.AsType[*fault](err); is {
		return refuse(http.StatusBadRequest, "invalid_scim_resource", "Invalid group member: %s", m.Value)
	}
	return err
}

// ofUpdate is how the member of a changed group is refused: of one that is not there
// PUT and PATCH say so by a 400.
func ofUpdate(err error) error {
	if f, is := errors.AsType[*fault](err); is && f.Code == "scim_resource_not_found" {
		return refuse(http.StatusBadRequest, "scim", "%s", f.Description)
	}
	return err
}
