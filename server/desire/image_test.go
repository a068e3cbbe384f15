package desire

import (
	"testing"

	"cupola/runtime/lrp"
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

// TestImageCredentialOfContainers holds that what runs on an image carries its registry's credentials (RFC-0046: "The CF API SHOULD
// then fill the fields ImageUsername and ImagePassword when creating Tasks or LRPs"), for a cell whose cache has lost it.
func TestImageCredentialOfContainers(t *testing.T) {
	stack := cf.Credential{Username: "stacks", Password: "s"}
	docker := cf.Credential{Username: "docker", Password: "d"}
	app := cf.Credentials{"R.example.com": stack, "other.example.com": {Username: "other", Password: "o"}}
	image := &cf.StackImage{Reference: "docker://r.example.com:5000/a/b@sha256:0"}
	for _, c := range []struct {
		name      string
		lifecycle cf.Lifecycle
		want      cf.Credential
	}{
		{"on a stack of the platform", cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: "minifs"}, cf.Credential{}},
		{"on an image", cf.Lifecycle{Type: cf.LifecycleBuildpack, Image: image}, stack},
		{"on an image of another registry", cf.Lifecycle{Type: cf.LifecycleBuildpack, Image: &cf.StackImage{Reference: "docker://docker.io/a/b@sha256:0"}}, cf.Credential{}},
		{"an image", cf.Lifecycle{Type: cf.LifecycleDocker, Image: image}, docker},
	} {
		in := processIn()
		in.App.Credentials, in.Droplet.Lifecycle, in.Package = app, c.lifecycle, docker
		task := TaskIn{Owner: in.Owner, Droplet: in.Droplet, Package: docker, Task: &cf.Task{}}
		runs := map[string]lrp.RunInfo{"process": Process(in).RunInfo, "task": Task(task)}
		if c.lifecycle.Type == cf.LifecycleBuildpack {
			staging := stagingIn()
			staging.Build.Lifecycle, staging.Build.Credentials = c.lifecycle, app
			runs["staging"] = Staging(staging)
		}
		for what, run := range runs {
			if got := (cf.Credential{Username: run.ImageUsername, Password: run.ImagePassword}); got != c.want {
				t.Errorf("%s %s: got %+v; want %+v", what, c.name, got, c.want)
			}
		}
	}
}
