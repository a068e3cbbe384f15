// Package authz says what an actor may see and change. It is pure: an Actor
// is made of a token's scopes and the user's roles, and answers from them.
package authz

import "cupola/store/cf"

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
	Anyone        // a valid token is needed, and no role
	Public        // no token is needed
	Guest         // with Anyone: no token is needed, and without one only what is public is seen

	SpaceMember // a role in a space of the org
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
		a.orgs[r.OrgGUID] |= OrgUser | SpaceMember
	}
	return a
}

// MayRead reports whether the token is one to read with at all.
func (a *Actor) MayRead() bool { return a.read }

// MayWrite reports whether the token is one to change things with at all.
func (a *Actor) MayWrite() bool { return a.write }

// May reports whether the actor satisfies the rule at the place. A manager of
// the org counts in its spaces as such.
func (a *Actor) May(rule Rule, p Place) bool {
	if a.Admin || rule&(Anyone|Public) != 0 {
		return true
	}
	return rule&(a.wide|a.orgs[p.OrgGUID]|a.space[p.SpaceGUID]) != 0
}

// Everywhere reports whether the actor sees all there is.
func (a *Actor) Everywhere() bool { return a.Admin || a.wide != 0 }

// OrgsWith are the GUIDs of the orgs in which the actor has one of the roles.
func (a *Actor) OrgsWith(roles Rule) []string { return having(a.orgs, roles) }

// SpacesWith are the GUIDs of the spaces in which the actor has one of the roles.
func (a *Actor) SpacesWith(roles Rule) []string { return having(a.space, roles) }

// having are the places where one of the roles is held.
func having(places map[string]Rule, roles Rule) (list []string) {
	for guid, rule := range places {
		if rule&roles != 0 {
			list = append(list, guid)
		}
	}
	return list
}
