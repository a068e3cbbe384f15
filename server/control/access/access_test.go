package access

import (
	"slices"
	"strings"
	"testing"

	"cupola/server/authz"
	"cupola/store/cf"
)

func role(t cf.RoleType, org, space string) *cf.Role {
	return &cf.Role{Type: t, OrgGUID: org, SpaceGUID: space}
}

func TestScope(t *testing.T) {
	spaces := func(orgs []string) (list []string, err error) {
		for _, o := range orgs {
			list = append(list, "in-"+o)
		}
		return list, nil
	}
	if s, _ := scopeOf(authz.NewActor("u", "u", "user", []string{"cloud_controller.admin"}, nil), spaces); s != nil {
		t.Errorf("admin: got %v; want everything", s)
	}
	a := authz.NewActor("u", "u", "user", nil, []*cf.Role{role(cf.OrgManager, "o", ""), role(cf.SpaceManager, "p", "s"), role(cf.SpaceAuditor, "p", "t"),
		role(cf.OrgAuditor, "q", ""), role(cf.OrgUser, "r", ""), role(cf.OrgBillingManager, "r", "")})
	s, err := scopeOf(a, spaces)
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
