// Package authz says what an actor may see and change. It is pure: an Actor
// is made of a token's scopes and the user's roles, and answers from them.
package authz

import (
	"slices"

	"cupola/store"
	"cupola/store/cf"
)

// Rule is a set of roles, any of which suffices. It stands in the access
// column of the API's route table. Admins satisfy every Rule.
type Rule uint32

// The elements of a Rule.
const (
	OrgManager Rule = 1 << iota
	OrgAuditor
	OrgBillingManager
	OrgUser
	SpaceDeveloper
	SpaceManager
	SpaceAuditor
	SpaceSupporter
	AdminReadOnly // cloud_controller.admin_read_only
	GlobalAuditor // cloud_controller.global_auditor
	Anyone        // whoever has a valid token
	Public        // no token is needed
	Guest         // with Anyone: no token is needed, and without one only what is public is seen

	spaceMember // a role in a space of the org
)

// Rules that many routes share.
const (
	Admin       Rule = 0
	OrgReader        = OrgManager | OrgAuditor | OrgBillingManager | OrgUser | SpaceReader
	SpaceReader      = OrgManager | SpaceDeveloper | SpaceManager | SpaceAuditor | SpaceSupporter | AdminReadOnly | GlobalAuditor
	// RouteReader may see routes and where they lead.
	RouteReader = SpaceReader | OrgAuditor
	// SpaceOperator may run what is there: Cloud Controller's space supporter
	// and above.
	SpaceOperator = SpaceDeveloper | SpaceSupporter
	// SecretReader may see environment variables.
	SecretReader = SpaceDeveloper | SpaceSupporter | AdminReadOnly
)

var ruleOf = map[cf.RoleType]Rule{
	cf.OrgManager: OrgManager, cf.OrgAuditor: OrgAuditor, cf.OrgBillingManager: OrgBillingManager, cf.OrgUser: OrgUser,
	cf.SpaceDeveloper: SpaceDeveloper, cf.SpaceManager: SpaceManager, cf.SpaceAuditor: SpaceAuditor, cf.SpaceSupporter: SpaceSupporter,
}

// Place is where a thing is: in an org, and perhaps in a space of it.
type Place struct{ OrgGUID, SpaceGUID string }

// Actor is who makes a request.
type Actor struct {
	GUID  string // of the user, or the client's ID
	Name  string
	Type  string // "user" or "client"
	Admin bool
	read  bool
	write bool
	wide  Rule // AdminReadOnly, GlobalAuditor: they hold everywhere
	orgs  map[string]Rule
	space map[string]Rule
}

// NewActor makes an Actor of a token's scopes and a user's roles.
func NewActor(guid, name, kind string, scopes []string, roles []*cf.Role) *Actor {
	a := &Actor{GUID: guid, Name: name, Type: kind, orgs: map[string]Rule{}, space: map[string]Rule{}}
	for _, s := range scopes {
		switch s {
		case "cloud_controller.admin":
			a.Admin, a.read, a.write = true, true, true
		case "cloud_controller.admin_read_only":
			a.wide, a.read = a.wide|AdminReadOnly, true
		case "cloud_controller.global_auditor":
			a.wide, a.read = a.wide|GlobalAuditor, true
		case "cloud_controller.read":
			a.read = true
		case "cloud_controller.write":
			a.write = true
		}
	}
	for _, r := range roles {
		if r.SpaceGUID == "" {
			a.orgs[r.OrgGUID] |= ruleOf[r.Type]
			continue
		}
		a.space[r.SpaceGUID] |= ruleOf[r.Type]
		a.orgs[r.OrgGUID] |= OrgUser | spaceMember
	}
	return a
}

// MayRead tells whether the token is one to read with at all.
func (a *Actor) MayRead() bool { return a.read }

// MayWrite tells whether the token is one to change things with at all.
func (a *Actor) MayWrite() bool { return a.write }

// May tells whether the actor satisfies the rule at the place. A manager of
// the org counts in its spaces as such.
func (a *Actor) May(rule Rule, p Place) bool {
	if a.Admin || rule&(Anyone|Public) != 0 {
		return true
	}
	return rule&(a.wide|a.orgs[p.OrgGUID]|a.space[p.SpaceGUID]) != 0
}

// everywhere tells whether the actor sees all there is.
func (a *Actor) everywhere() bool { return a.Admin || a.wide != 0 }

// The roles by which one sees the domains of an org, and the audit events of a
// space.
const (
	domainReader = OrgManager | OrgAuditor | spaceMember
	eventReader  = SpaceDeveloper | SpaceAuditor | SpaceSupporter
)

// Scope is what the actor sees; nil is everything. spacesOf gives the GUIDs of
// the spaces of orgs.
func (a *Actor) Scope(spacesOf func(orgs []string) ([]string, error)) (*store.Scope, error) {
	if a.everywhere() {
		return nil, nil
	}
	s := &store.Scope{Users: []string{a.GUID}, Orgs: having(a.orgs, ^Rule(0)), DomainOrgs: having(a.orgs, domainReader), EventOrgs: having(a.orgs, OrgAuditor),
		Spaces: having(a.space, ^Rule(0)), EventSpaces: having(a.space, eventReader),
		MemberSpaces: having(a.space, ^Rule(0)), ServiceSpaces: having(a.space, SpaceOperator)}
	s.ManagedOrgs = having(a.orgs, OrgManager)
	managed, err := spacesOf(s.ManagedOrgs)
	if err != nil {
		return nil, err
	}
	s.Spaces = append(s.Spaces, managed...)
	audited, err := spacesOf(s.EventOrgs)
	s.RouteSpaces = slices.Concat(s.Spaces, audited)
	return s, err
}

// having are the places where one of the roles is held.
func having(places map[string]Rule, roles Rule) (list []string) {
	for guid, rule := range places {
		if rule&roles != 0 {
			list = append(list, guid)
		}
	}
	return list
}
