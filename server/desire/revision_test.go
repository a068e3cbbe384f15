package desire

import (
	"testing"

	"cupola/store/cf"
)

// TestWhatRunsIsTheRevision: an instance that is started later is like those of
// the start, whatever the app has by then.
func TestWhatRunsIsTheRevision(t *testing.T) {
	r := &cf.Revision{Env: map[string]string{"KEY": "then"}, Commands: map[string]string{"web": "./then"}}
	for _, c := range []struct {
		name         string
		on           bool
		r            *cf.Revision
		key, command string
	}{
		{"a revision", true, r, "then", "./then"},
		{"none", true, nil, "app", "./now"},
		{"revisions were turned off", false, r, "app", "./now"},
	} {
		in := processIn()
		in.App.RevisionsOn, in.Process.Command = c.on, "./now"
		at := in.At(c.r)
		if got := lookup(at.env(8080))["KEY"]; got != c.key || at.command() != c.command {
			t.Errorf("%s: got %s and %s; want %s and %s", c.name, got, at.command(), c.key, c.command)
		}
		if in.App.Env["KEY"] != "app" || in.Process.Command != "./now" {
			t.Errorf("%s: the rows were changed", c.name)
		}
	}
}

func TestARestartOfAProcessAloneMakesANewProcessGUID(t *testing.T) {
	app, p, other := &cf.App{Rev: 1}, &cf.Process{Resource: cf.Resource{GUID: "p"}}, &cf.Process{Resource: cf.Resource{GUID: "other"}}
	before, beside := ProcessGUID(p, app), ProcessGUID(other, app)
	p.Rev++
	if ProcessGUID(p, app) == before || ProcessGUID(other, app) != beside || CFProcess(ProcessGUID(p, app)) != "p" {
		t.Errorf("got %s after %s, and %s beside", ProcessGUID(p, app), before, ProcessGUID(other, app))
	}
}

func TestAProcessKeepsItsDroplet(t *testing.T) {
	app := &cf.App{DropletGUID: "new"}
	for have, want := range map[string]string{"": "new", "old": "old"} {
		if got := DropletGUID(&cf.Process{DropletGUID: have}, app); got != want {
			t.Errorf("%q: got %q; want %q", have, got, want)
		}
	}
}
