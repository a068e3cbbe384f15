package uaa

import (
	"strings"
	"testing"
)

func TestPasswordPolicy(t *testing.T) {
	strict := PasswordPolicy{MinLength: 8, Upper: 1, Lower: 1, Digits: 2, Special: 1}
	for _, c := range []struct {
		policy         PasswordPolicy
		password, want string
	}{
		{PasswordPolicy{}, "x", ""},
		{PasswordPolicy{}, "", "Password must be at least 1 characters in length."},
		{PasswordPolicy{}, strings.Repeat("x", 73), "Password must be no more than 72 bytes in length."},
		{strict, "Abcdef12!", ""},
		{strict, "Ünläute 12", ""},
		{strict, "abcdef12!", "Password must contain at least 1 uppercase characters."},
		{strict, "ABCDEF12!", "Password must contain at least 1 lowercase characters."},
		{strict, "Abcdefg1!", "Password must contain at least 2 digit characters."},
		{strict, "Abcdefg12", "Password must contain at least 1 special characters."},
		{strict, "Ab1!", "Password must be at least 8 characters in length.,Password must contain at least 2 digit characters."},
	} {
		got := ""
		if err := c.policy.check(c.password); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: got %q; want %q", c.password, got, c.want)
		}
	}
}

func TestParsePolicy(t *testing.T) {
	got, err := ParsePolicy(map[string]int{"min-length": 12, "digits": 1})
	if want := (PasswordPolicy{MinLength: 12, Digits: 1}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []map[string]int{{"length": 1}, {"upper": -1}, {"min-length": 73}, {"upper": 40, "lower": 40}} {
		if _, err := ParsePolicy(bad); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

func TestPolicyHoldsForNewPasswords(t *testing.T) {
	u, srv := start(t)
	u.SetPolicy(PasswordPolicy{MinLength: 8})
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	if status, body := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"short"}`); status != 400 || body["error"] != "invalid_password" {
		t.Errorf("create: got %d %v", status, body)
	}
	path := "/Users/" + userID(t, srv, admin) + "/password"
	if status, body := ask(t, srv, admin, "PUT", path, `{"oldPassword":"pw","password":"short"}`); status != 400 || body["error"] != "invalid_password" {
		t.Errorf("change: got %d %v", status, body)
	}
}
