package authz

import (
	"slices"
	"strings"
	"testing"

	"cupola/store/cf"
)

func role(t cf.RoleType, org, space string) *cf.Role {
	return &cf.Role{Type: t, OrgGUID: org, SpaceGUID: space}
}

func TestMay(t *testing.T) {
	user := []string{"cloud_controller.read", "cloud_controller.write"}
	here := Place{"o", "s"}
	for _, c := range []struct {
		name   string
		scopes []string
		roles  []*cf.Role
		rule   Rule
		place  Place
		want   bool
	}{
		{"admin does all", []string{"cloud_controller.admin"}, nil, Admin, here, true},
		{"user is no admin", user, nil, Admin, here, false},
		{"developer pushes", user, []*cf.Role{role(cf.SpaceDeveloper, "o", "s")}, SpaceDeveloper, here, true},
		{"developer of another space does not", user, []*cf.Role{role(cf.SpaceDeveloper, "o", "s2")}, SpaceDeveloper, here, false},
		{"auditor reads", user, []*cf.Role{role(cf.SpaceAuditor, "o", "s")}, SpaceReader, here, true},
		{"auditor does not push", user, []*cf.Role{role(cf.SpaceAuditor, "o", "s")}, SpaceDeveloper, here, false},
		{"auditor sees no secrets", user, []*cf.Role{role(cf.SpaceAuditor, "o", "s")}, SecretReader, here, false},
		{"supporter restarts", user, []*cf.Role{role(cf.SpaceSupporter, "o", "s")}, SpaceOperator, here, true},
		{"org manager reads in spaces", user, []*cf.Role{role(cf.OrgManager, "o", "")}, SpaceReader, here, true},
		{"org manager of another org does not", user, []*cf.Role{role(cf.OrgManager, "o2", "")}, SpaceReader, here, false},
		{"org auditor does not read in spaces", user, []*cf.Role{role(cf.OrgAuditor, "o", "")}, SpaceReader, here, false},
		{"global auditor reads everywhere", []string{"cloud_controller.global_auditor"}, nil, SpaceReader, here, true},
		{"global auditor sees no secrets", []string{"cloud_controller.global_auditor"}, nil, SecretReader, here, false},
		{"read-only admin sees secrets", []string{"cloud_controller.admin_read_only"}, nil, SecretReader, here, true},
		{"read-only admin changes nothing", []string{"cloud_controller.admin_read_only"}, nil, SpaceDeveloper, here, false},
	} {
		a := NewActor("u", "u", "user", c.scopes, c.roles)
		if got := a.May(c.rule, c.place); got != c.want {
			t.Errorf("%s: got %v; want %v", c.name, got, c.want)
		}
	}
}

func TestScope(t *testing.T) {
	spaces := func(orgs []string) (list []string, err error) {
		for _, o := range orgs {
			list = append(list, "in-"+o)
		}
		return list, nil
	}
	if s, _ := NewActor("u", "u", "user", []string{"cloud_controller.admin"}, nil).Scope(spaces); s != nil {
		t.Errorf("admin: got %v; want everything", s)
	}
	a := NewActor("u", "u", "user", nil, []*cf.Role{role(cf.OrgManager, "o", ""), role(cf.SpaceManager, "p", "s"), role(cf.SpaceAuditor, "p", "t"),
		role(cf.OrgAuditor, "q", ""), role(cf.OrgUser, "r", ""), role(cf.OrgBillingManager, "r", "")})
	s, err := a.Scope(spaces)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		got  []string
		want string
	}{
		{"orgs", s.Orgs, "o p q r"}, {"spaces", s.Spaces, "in-o s t"}, {"users", s.Users, "u"}, {"orgs' domains", s.DomainOrgs, "o p q"},
		{"spaces' routes", s.RouteSpaces, "in-o in-q s t"}, {"orgs' events", s.EventOrgs, "q"}, {"spaces' events", s.EventSpaces, "t"},
	} {
		slices.Sort(c.got)
		if got := strings.Join(c.got, " "); got != c.want {
			t.Errorf("%s: got %s; want %s", c.what, got, c.want)
		}
	}
}
