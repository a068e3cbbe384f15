package desire

import (
	"testing"

	"cupola/store/cf"
)

// TestCredentialFor holds how RFC-0046 ("the first credentials … that matches the URL/Hostname of the stack image URI") is read.
func TestCredentialFor(t *testing.T) {
	const hub = "docker.io"
	for _, c := range []struct {
		registry string
		entries  map[string]string // user by entry
		want     string            // user
	}{
		{"r.example.com", map[string]string{"r.example.com": "u"}, "u"},
		{"r.example.com", map[string]string{"R.Example.COM": "u"}, "u"},
		{"r.example.com", map[string]string{"https://r.example.com": "u"}, "u"},
		{"r.example.com", map[string]string{"https://R.example.com/v2/": "u"}, "u"},
		{"r.example.com", map[string]string{"r.example.com:443": "u"}, "u"},
		{"r.example.com:443", map[string]string{"r.example.com": "u"}, "u"},
		{"r.example.com:5000", map[string]string{"r.example.com": "u"}, "u"},
		{"r.example.com:5000", map[string]string{"https://r.example.com": "u"}, "u"},
		{"r.example.com:5000", map[string]string{"https://r.example.com:5000/": "u"}, "u"},
		{"[::1]:5000", map[string]string{"[::1]": "u"}, "u"},
		{"r.example.com:5000", map[string]string{"r.example.com": "host", "r.example.com:5000": "port", "https://r.example.com": "url"}, "port"},
		{"r.example.com", map[string]string{"R.example.com": "other", "r.example.com:443": "tls", "r.example.com": "same"}, "same"},
		{hub, map[string]string{"https://index.docker.io/v1/": "u"}, "u"},
		{hub, map[string]string{"registry-1.docker.io": "u"}, "u"},

		{"r.example.com:5000", map[string]string{"r.example.com:443": "u"}, ""},
		{"r.example.com:5000", map[string]string{"r.example.com:5001": "u"}, ""},
		{"r.example.com", map[string]string{"r.example.com:5000": "u"}, ""},
		{"r.example.com", map[string]string{"example.com": "u", "r.example.com.evil.com": "u", "https://evil.com/r.example.com": "u", "r": "u", "": "u"}, ""},
		{"r.example.com", map[string]string{"https://r.example.com@evil.com/": "u"}, ""},
	} {
		all := cf.Credentials{"token.example.com": {Token: "t"}}
		for entry, user := range c.entries {
			all[entry] = cf.Credential{Username: user, Password: "p of " + user, Token: "t"}
		}
		want := cf.Credential{}
		if c.want != "" {
			want = cf.Credential{Username: c.want, Password: "p of " + c.want}
		}
		if got := CredentialFor(all, c.registry); got != want {
			t.Errorf("%s with %v: got %+v; want %+v", c.registry, c.entries, got, want)
		}
	}
	if got := CredentialFor(cf.Credentials{"r.example.com": {Token: "t"}}, "r.example.com"); got != (cf.Credential{}) {
		t.Errorf("a token: got %+v; want none", got)
	}
}
