package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

func onImage(name, more string) string {
	return fmt.Sprintf(`{"name": %q, "relationships": {"space": {"data": {"guid": "space-1"}}}, "lifecycle": {"type": "buildpack", %s}}`, name, more)
}

func TestAnImageIsAStackWhereThatIsAllowed(t *testing.T) {
	const image = `"data": {"stack": "docker://reg.io/img:1", "buildpacks": ["https://packs.io/b.zip"]}`
	const off = "Feature Disabled: diego_custom_stacks"
	w := newWorld(t)
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/v3/apps", body: onImage("a", image), status: 403, want: detail(330002, off)},
		{method: "POST", path: "/v3/apps", body: onImage("a", image), status: 403, want: detail(330002, off)},
		{method: "PATCH", path: "/v3/feature_flags/diego_custom_stacks", body: `{"enabled": true}`, status: 200},
		{as: "space_developer", method: "POST", path: "/v3/apps", body: onImage("a", image), status: 201, save: "a", want: `{"lifecycle": {"data": {"stack": "docker://reg.io/img:1"}}}`},
		{method: "POST", path: "/v3/apps", body: onImage("b", `"data": {"stack": "docker:///foo/bar#tag"}`), status: 201},
		{method: "POST", path: "/v3/apps", body: onImage("c", `"data": {"stack": "docker://reg.io/img:"}`), status: 422},
		{method: "POST", path: "/v3/apps", body: onImage("c", `"data": {"stack": "lucid64"}`), status: 422,
			want: detail(10008, "Stack must be an existing stack, or an image: docker://host[:port]/namespace/name[:tag|@digest]")},
		{method: "POST", path: "/v3/apps", body: onImage("c", `"data": {"stack": "docker://reg.io/img", "buildpacks": ["none"]}`), status: 422,
			want: detail(10008, `Buildpack "none" for stack "docker://reg.io/img" must be an existing admin buildpack or a valid git URI`)},
	})
	w.write(func(tx *store.Tx) error {
		app, err := store.Apps.Get(tx, w.saved["a"])
		if err != nil {
			return err
		}
		app.DropletGUID = "d"
		if err := store.Packages.Insert(tx, &cf.Package{Resource: cf.Resource{GUID: "p"}, AppGUID: app.GUID, Type: "bits", State: cf.PackageReady, Digest: "x"}); err != nil {
			return err
		}
		return store.Apps.Update(tx, app)
	})
	build := `{"package": {"guid": "p"}}`
	w.run(t, []step{
		{method: "POST", path: "/v3/builds", body: build, status: 201},
		{method: "PATCH", path: "/v3/feature_flags/diego_custom_stacks", body: `{"enabled": false}`, status: 200},
		{method: "POST", path: "/v3/apps/{a}/actions/start", status: 403, want: detail(330002, off)},
		{method: "POST", path: "/v3/apps/{a}/actions/restart", status: 403, want: detail(330002, off)},
	})
	w.write(func(tx *store.Tx) error {
		all, err := store.Builds.By(tx, "app_guids", w.saved["a"])
		if err != nil {
			return err
		}
		all[0].State = cf.BuildFailed
		return store.Builds.Update(tx, all[0])
	})
	w.run(t, []step{{method: "POST", path: "/v3/builds", body: build, status: 403, want: detail(330002, off)}})
}

// TestAnImageNeedsABuildpackThatIsForAnyStack follows RFC-0046: "at least one system buildpack without a pinned stack MUST exist".
func TestAnImageNeedsABuildpackThatIsForAnyStack(t *testing.T) {
	const image, refused = "docker://reg.io/img:1", `Buildpack for stack "docker://reg.io/img:1" must be an existing admin buildpack or a valid git URI: %s; name one by its URL`
	pack := func(name, stack string, change func(*cf.Buildpack)) *cf.Buildpack {
		b := &cf.Buildpack{Name: name, Stack: stack, Digest: "d", State: "READY", Enabled: true, Lifecycle: "buildpack"}
		if change != nil {
			change(b)
		}
		return b
	}
	noBits := func(b *cf.Buildpack) { b.Digest, b.State = "", "AWAITING_UPLOAD" }
	disabled := func(b *cf.Buildpack) { b.Enabled = false }
	for name, c := range map[string]struct {
		packs []*cf.Buildpack
		why   string // "" where the app is created
	}{
		"none":                {nil, "there is none"},
		"of a stack":          {[]*cf.Buildpack{pack("ruby", "minifs", nil)}, `ruby is for stack "minifs"`},
		"disabled":            {[]*cf.Buildpack{pack("ruby", "", disabled)}, "ruby is disabled"},
		"without bits":        {[]*cf.Buildpack{pack("ruby", "", noBits)}, "ruby has no bits"},
		"each of them":        {[]*cf.Buildpack{pack("one", "minifs", disabled), pack("two", "", disabled), pack("three", "", noBits)}, `one is for stack "minifs", two is disabled, three has no bits`},
		"one that can be had": {[]*cf.Buildpack{pack("one", "minifs", nil), pack("two", "", nil)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(func(tx *store.Tx) error {
				all, err := store.Buildpacks.All(tx)
				for _, b := range all {
					err = errors.Join(err, store.Buildpacks.Delete(tx, b.GUID))
				}
				for i, b := range c.packs {
					b.Position = i + 1
					err = errors.Join(err, store.Buildpacks.Insert(tx, b))
				}
				return err
			})
			create := step{method: "POST", path: "/v3/apps", body: onImage("a", `"data": {"stack": "`+image+`"}`), status: 201}
			if c.why != "" {
				create.status, create.want = 422, detail(10008, fmt.Sprintf(refused, c.why))
			}
			w.run(t, []step{{method: "PATCH", path: "/v3/feature_flags/diego_custom_stacks", body: `{"enabled": true}`, status: 200}, create})
		})
	}
}

// TestABuildpackWithoutBitsIsNotThere: CC: app/models/runtime/buildpack.rb, list_admin_buildpacks excludes those without a key.
func TestABuildpackWithoutBitsIsNotThere(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "fresh"}`, status: 201},
		{method: "POST", path: "/v3/apps", body: onImage("a", `"data": {"stack": "minifs", "buildpacks": ["fresh"]}`), status: 422,
			want: detail(10008, `Buildpack "fresh" for stack "minifs" must be an existing admin buildpack or a valid git URI`)},
	})
}

func TestCredentialsOfRegistriesAreKeptAndNeverShown(t *testing.T) {
	const outside = `"data": {"stack": "docker://reg.io/img:1"}, "credentials": {"reg.io": {"username": "u", "password": "hush"}, "packs.io": {"token": "hush"}}`
	const within = `"data": {"stack": "docker://reg.io/img:1", "credentials": {"reg.io": {"username": "u", "password": "hush"}}}`
	w := newWorld(t)
	w.run(t, []step{
		{method: "PATCH", path: "/v3/feature_flags/diego_custom_stacks", body: `{"enabled": true}`, status: 200},
		{method: "POST", path: "/v3/apps", body: onImage("a", outside), status: 201, save: "a", want: `{"lifecycle": {"data": {"credentials": "***"}}}`},
		{method: "POST", path: "/v3/apps", body: onImage("b", within), status: 201, want: `{"lifecycle": {"data": {"credentials": "***"}}}`},
		{method: "POST", path: "/v3/apps", body: onImage("c", strings.Replace(within, `"username": "u", `, "", 1)), status: 422,
			want: detail(10008, "Credentials for registry 'reg.io' must include 'username' and 'password'")},
		{method: "POST", path: "/v3/apps", body: onImage("c", strings.Replace(within, `{"username": "u", "password": "hush"}`, `"hush"`, 1)), status: 422,
			want: detail(10008, "Lifecycle Credentials credentials value must be a hash")},
		{method: "PATCH", path: "/v3/apps/{a}", body: `{"lifecycle": {"type": "buildpack", "data": {"buildpacks": []}}}`, status: 200, want: `{"lifecycle": {"data": {"credentials": "***"}}}`},
	})
	if got := w.ask("admin", "GET", w.fill("/v3/apps/{a}"), "", ""); strings.Contains(got.text, "hush") {
		t.Errorf("got %s", got.text)
	}
	w.write(func(tx *store.Tx) error {
		app, err := store.Apps.Get(tx, w.saved["a"])
		if err == nil && app.Credentials["reg.io"] != (cf.Credential{Username: "u", Password: "hush"}) {
			t.Errorf("got %v", app.Credentials)
		}
		return err
	})
}

func TestAnAppMayBeAnImage(t *testing.T) {
	const off = "Feature Disabled: diego_docker"
	docker := func(name string) string {
		return fmt.Sprintf(`{"name": %q, "relationships": {"space": {"data": {"guid": "space-1"}}}, "lifecycle": {"type": "docker", "data": {}}}`, name)
	}
	image := func(app, data string) string {
		return fmt.Sprintf(`{"type": "docker", "data": %s, "relationships": {"app": {"data": {"guid": %q}}}}`, data, app)
	}
	const private = `{"image": "reg.io/a/b:1", "username": "u", "password": "hush"}`
	w := newWorld(t)
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/v3/apps", body: docker("a"), status: 403, want: detail(330002, off)},
		{method: "PATCH", path: "/v3/feature_flags/diego_docker", body: `{"enabled": true}`, status: 200},
		{as: "space_developer", method: "POST", path: "/v3/apps", body: docker("a"), status: 201, save: "a", want: `{"lifecycle": {"type": "docker", "data": {}}}`},
		{method: "PATCH", path: "/v3/apps/{a}", body: `{"lifecycle": {"type": "buildpack", "data": {}}}`, status: 422, want: detail(10008, "Lifecycle type cannot be changed from docker to buildpack")},
		{method: "POST", path: "/v3/packages", body: image("app-1", private), status: 422, want: detail(10008, "Cannot create Docker package for a buildpack app.")},
		{method: "POST", path: "/v3/packages", body: `{"type": "bits", "relationships": {"app": {"data": {"guid": "{a}"}}}}`, status: 422, want: detail(10008, "Cannot create bits package for a Docker app.")},
		{method: "POST", path: "/v3/packages", body: image("{a}", `{}`), status: 422, want: detail(10008, "Data Image must be a string, Data Image required")},
		{method: "POST", path: "/v3/packages", body: image("{a}", `{"image": "docker://a/b"}`), status: 422, want: detail(10008, "Docker URI [docker://a/b] should not contain scheme")},
		{method: "POST", path: "/v3/packages", body: image("{a}", `{"image": "a/b", "password": "x"}`), status: 422, want: detail(10008, "Username and password can only be given together")},
		{as: "space_developer", method: "POST", path: "/v3/packages", body: image("{a}", private), status: 201, save: "p", want: `{"state": "READY", "data": {"image": "reg.io/a/b:1", "username": "u", "password": "***"}}`},
		{method: "GET", path: "/v3/packages/{p}/download", status: 422},
		{as: "space_developer", method: "POST", path: "/v3/builds", body: `{"package": {"guid": "{p}"}}`, status: 201, save: "b", want: `{"state": "STAGING", "lifecycle": {"type": "docker", "data": {}}}`},
	})
	if got := w.ask("admin", "GET", w.fill("/v3/apps/{a}/manifest"), "", ""); !strings.Contains(got.text, "image: reg.io/a/b:1") || !strings.Contains(got.text, "username: u") || strings.Contains(got.text, "hush") {
		t.Errorf("got %s", got.text)
	}
	w.write(func(tx *store.Tx) error {
		b, err := store.Builds.Get(tx, w.saved["b"])
		if err != nil {
			return err
		}
		if b.Credentials["reg.io"] != (cf.Credential{Username: "u", Password: "hush"}) {
			t.Errorf("got %v", b.Credentials)
		}
		d := &cf.Droplet{AppGUID: b.AppGUID, State: cf.DropletStaged, Lifecycle: cf.Lifecycle{Type: cf.LifecycleDocker}}
		err = store.Droplets.Insert(tx, d)
		w.saved["d"] = d.GUID
		return err
	})
	w.run(t, []step{{method: "GET", path: "/v3/droplets/{d}/download", status: 422, want: detail(10008, "Cannot download droplets with 'docker' lifecycle.")}})
}
