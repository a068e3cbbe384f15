// Package access knows who an actor is, what the actor sees, and whether the actor
// may act at a place: by current roles, the token's scopes, and suspended orgs. The
// rules themselves are in package authz.
package access

import (
	"slices"

	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

// The roles by which one sees the domains of an org, and the audit events of a
// space.
const (
	domainReader = authz.OrgManager | authz.OrgAuditor | authz.SpaceMember
	eventReader  = authz.SpaceDeveloper | authz.SpaceAuditor | authz.SpaceSupporter
)

// Actor is the user or client of a token with these scopes, with its current
// roles.
func Actor(tx *store.Tx, who cf.Actor, scopes []string) (*authz.Actor, error) {
	roles, err := store.Roles.By(tx, "user_guids", who.GUID)
	if err != nil {
		return nil, err
	}
	return authz.NewActor(who.GUID, who.Name, who.Type, scopes, roles), nil
}

// DirectorAdmin reports whether an actor with these scopes may do all to BOSH deployments by
// the director's API.
func DirectorAdmin(a *authz.Actor, scopes []string) bool {
	return a.Admin || slices.Contains(scopes, "bosh.admin")
}

// Who is an actor, for rows that remember who made them.
func Who(a *authz.Actor) cf.Actor { return cf.Actor{GUID: a.GUID, Type: a.Type, Name: a.Name} }

// Scope is what the actor sees; nil means everything.
func Scope(tx *store.Tx, a *authz.Actor) (*store.Scope, error) {
	return scopeOf(a, func(orgs []string) (guids []string, err error) {
		spaces, err := store.Spaces.By(tx, "organization_guids", orgs...)
		for _, s := range spaces {
			guids = append(guids, s.GUID)
		}
		return guids, err
	})
}

// scopeOf is Scope; spacesOf gives the GUIDs of the spaces of orgs.
func scopeOf(a *authz.Actor, spacesOf func(orgs []string) ([]string, error)) (*store.Scope, error) {
	if a.Everywhere() {
		return nil, nil
	}
	s := &store.Scope{Users: []string{a.GUID}, Orgs: a.OrgsWith(^authz.Rule(0)), DomainOrgs: a.OrgsWith(domainReader), EventOrgs: a.OrgsWith(authz.OrgAuditor),
		Spaces: a.SpacesWith(^authz.Rule(0)), EventSpaces: a.SpacesWith(eventReader),
		MemberSpaces: a.SpacesWith(^authz.Rule(0)), ServiceSpaces: a.SpacesWith(authz.SpaceOperator), ManagedOrgs: a.OrgsWith(authz.OrgManager)}
	managed, err := spacesOf(s.ManagedOrgs)
	if err != nil {
		return nil, err
	}
	s.Spaces = append(s.Spaces, managed...)
	audited, err := spacesOf(s.EventOrgs)
	s.RouteSpaces = slices.Concat(s.Spaces, audited)
	return s, err
}

// NotAuthorized is the error for an actor who sees a resource but may not do that to it.
func NotAuthorized() error {
	return cf.Errorf(cf.NotAuthorized, "You are not authorized to perform the requested action")
}

// Check refuses an actor who does not satisfy the rule at a place, or who is not an
// admin and would change something in a suspended org.
func Check(tx *store.Tx, a *authz.Actor, rule authz.Rule, p authz.Place, writes bool) error {
	if !a.May(rule, p) {
		return NotAuthorized()
	}
	if p.OrgGUID == "" || a.Admin || !writes {
		return nil
	}
	org, err := store.Orgs.Get(tx, p.OrgGUID)
	if err == nil && org.Suspended {
		return cf.Errorf(cf.OrgSuspended, "The organization is suspended")
	}
	return err
}

// OfOrg is the place of an org.
func OfOrg(o *cf.Org) authz.Place { return authz.Place{OrgGUID: o.GUID} }

// At is the place of resources in a space.
func At(s *cf.Space) authz.Place { return authz.Place{OrgGUID: s.OrgGUID, SpaceGUID: s.GUID} }
