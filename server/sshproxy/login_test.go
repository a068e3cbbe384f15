package sshproxy

import (
	"strings"
	"testing"
)

func TestParseLogin(t *testing.T) {
	got, err := parseLogin("cf:1b92a0cc-3484-44c3-a99c-91e26d3a1d20/12")
	if want := (login{"1b92a0cc-3484-44c3-a99c-91e26d3a1d20", 12}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, user := range []string{
		"", "root", "cf:", "cf:guid", "cf:/0", "cf:guid/", "cf:guid/-1", "cf:guid/x", "cf:guid/0/1", "diego:guid/0", "cf:guid/2147483648",
		"cf:gu\nid/0", "cf:gu\xffid/0", "cf:" + strings.Repeat("g", maxLogin) + "/0",
	} {
		if got, err := parseLogin(user); err == nil {
			t.Errorf("%q: got %+v; want an error", user, got)
		}
	}
}

func FuzzParseLogin(f *testing.F) {
	f.Add("cf:guid/0")
	f.Fuzz(func(t *testing.T, user string) {
		at, err := parseLogin(user)
		if err == nil && (at.index < 0 || at.processGUID == "" || !strings.HasPrefix(user, "cf:"+at.processGUID+"/")) {
			t.Errorf("%q: got %+v", user, at)
		}
		if text := printable(user); strings.ContainsAny(text, "\n\x1b\x00") {
			t.Errorf("%q would be logged", text)
		}
	})
}
