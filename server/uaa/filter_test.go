package uaa

import (
	"strings"
	"testing"
)

func TestFilters(t *testing.T) {
	joe := attributes{"username": {"Joe@x.org"}, "origin": {"uaa"}, "email": {""}, "members.value": {"a", "b"}}
	for text, want := range map[string]bool{
		``:                                       true,
		`userName eq "joe@X.org"`:                true,
		`username Eq "jo"`:                       false,
		`username sw "jo"`:                       true,
		`username co "x.o" and origin eq "ldap"`: false,
		`username eq "no" or origin eq "uaa"`:    true,
		`origin eq "uaa" or origin eq "uaa" and username eq "no"`:   true,
		`(origin eq "uaa" or origin eq "uaa") and username eq "no"`: false,
		`email pr`:              false,
		`username pr`:           true,
		`members.value eq "b"`:  true,
		`displayName eq "x"`:    false,
		`username eq "a\"b\\c"`: false,
	} {
		f, err := parseFilter(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := f(joe); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}

func TestBadFilters(t *testing.T) {
	for _, text := range []string{`username`, `username eq`, `username eq joe`, `username eq "joe`, `password_hash sw "$2"`, `username gt "a"`, `(username pr`,
		`username pr)`, `username pr username pr`, `and`, `username eq "a" and`, strings.Repeat("(", maxFilter+1)} {
		if _, err := parseFilter(text); err == nil {
			t.Errorf("%.40s was taken", text)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	f.Add(`userName eq "x" and origin eq "uaa"`)
	f.Add(`id eq "\"" or (email pr)`)
	f.Fuzz(func(t *testing.T, s string) {
		if wanted, err := parseFilter(s); err == nil {
			wanted(attributes{"id": {s}})
		}
	})
}
