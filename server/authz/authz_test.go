package authz

import (
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
