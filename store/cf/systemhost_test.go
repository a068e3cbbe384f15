package cf

import "testing"

func TestSystemHosts(t *testing.T) {
	for _, c := range []struct {
		name             string
		system, reserved bool
	}{
		{"api.apps.test", true, true},
		{"UAA.apps.test.", true, true},
		{"x.uaa.apps.test", false, true},
		{"*.login.apps.test", false, true},
		{"apps.test", false, false},
		{"*.apps.test", false, false},
		{"uaa.x.apps.test", false, false},
		{"myuaa.apps.test", false, false},
		{"uaa.other.test", false, false},
		{"uaa", false, false},
		{"", false, false},
	} {
		if got := IsSystemHost(c.name, "apps.test"); got != c.system {
			t.Errorf("IsSystemHost(%q) = %t", c.name, got)
		}
		if got := ReservedName(c.name, "apps.test"); got != c.reserved {
			t.Errorf("ReservedName(%q) = %t", c.name, got)
		}
	}
}
