package api

import (
	"fmt"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

func cnbApp(name, data string) string {
	return fmt.Sprintf(`{"name": %q, "relationships": {"space": {"data": {"guid": "space-1"}}}, "lifecycle": {"type": "cnb", "data": {%s}}}`, name, data)
}

// TestCloudNativeBuildpacksNeedTheirFlag follows CC: apps_controller.rb, builds_controller.rb.
func TestCloudNativeBuildpacksNeedTheirFlag(t *testing.T) {
	const off = "Feature Disabled: diego_cnb"
	w := newWorld(t)
	body := cnbApp("a", `"buildpacks": ["docker://reg.io/b:1", "https://user:secret@packs.io/b.cnb"], "credentials": {"reg.io": {"username": "u", "password": "secret"}}`)
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/v3/apps", body: body, status: 403, want: detail(330002, off)},
		{method: "PATCH", path: "/v3/feature_flags/diego_cnb", body: `{"enabled": true}`, status: 200},
		{as: "space_developer", method: "POST", path: "/v3/apps", body: body, status: 201, save: "a",
			want: `{"lifecycle": {"type": "cnb", "data": {"buildpacks": ["docker://reg.io/b:1", "https://***:***@packs.io/b.cnb"], "stack": "minifs", "credentials": "***"}}}`},
		{method: "PATCH", path: "/v3/apps/{a}", body: `{"lifecycle": {"type": "buildpack", "data": {}}}`, status: 422, want: detail(10008, "Lifecycle type cannot be changed from cnb to buildpack")},
		{method: "PATCH", path: "/v3/apps/{a}", body: `{"lifecycle": {"data": {"buildpacks": ["docker://reg.io/c"]}}}`, status: 200, want: `{"lifecycle": {"type": "cnb", "data": {"buildpacks": ["docker://reg.io/c"]}}}`},
		{method: "GET", path: "/v3/apps?lifecycle_type=cnb", status: 200, want: `{"pagination": {"total_results": 1}}`},
		{method: "POST", path: "/v3/packages", body: `{"type": "docker", "data": {"image": "x"}, "relationships": {"app": {"data": {"guid": "{a}"}}}}`, status: 422,
			want: detail(10008, "Cannot create Docker package for a buildpack app.")},
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
	w.run(t, []step{
		{method: "PATCH", path: "/v3/feature_flags/diego_cnb", body: `{"enabled": false}`, status: 200},
		{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "p"}}`, status: 403, want: detail(330002, off)},
		{method: "POST", path: "/v3/apps/{a}/actions/start", status: 403, want: detail(330002, off)},
		{method: "POST", path: "/v3/apps/{a}/actions/restart", status: 403, want: detail(330002, off)},
		{method: "PATCH", path: "/v3/feature_flags/diego_cnb", body: `{"enabled": true}`, status: 200},
		{method: "POST", path: "/v3/builds", body: `{"package": {"guid": "p"}}`, status: 201, want: `{"lifecycle": {"type": "cnb", "data": {"credentials": "***"}}}`},
	})
}

// TestNamesOfCloudNativeBuildpacks follows CC: BuildpackLifecycleDataValidator, UriUtils.is_cnb_buildpack_uri?.
func TestNamesOfCloudNativeBuildpacks(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{{method: "PATCH", path: "/v3/feature_flags/diego_cnb", body: `{"enabled": true}`, status: 200}})
	for name, want := range map[string]string{
		"docker://docker.io/paketobuildpacks/go": "",
		"docker://go":                            "",
		"http://packs.io/go.cnb":                 "",
		"own":                                    "",
		"go_buildpack":                           `Buildpack "go_buildpack" for stack "minifs" must be an existing admin buildpack or a valid git URI`,
		"gh:paketo/go":                           `Buildpack "gh:paketo/go" for stack "minifs" must be an existing admin buildpack or a valid git URI`,
		"git@github.com:paketo/go.git":           `Specified unknown buildpack name: "git@github.com:paketo/go.git"`,
		"oci://reg.io/go":                        `Specified unknown buildpack name: "oci://reg.io/go"`,
	} {
		w.write(func(tx *store.Tx) error {
			all, err := store.Buildpacks.By(tx, "names", "own")
			if err != nil || len(all) > 0 {
				return err
			}
			return store.Buildpacks.Insert(tx, &cf.Buildpack{Name: "own", State: "READY", Enabled: true, Lifecycle: "cnb", Digest: "d", Position: 1})
		})
		s := step{method: "POST", path: "/v3/apps", body: cnbApp("app of "+name, fmt.Sprintf(`"stack": "minifs", "buildpacks": [%q]`, name)), status: 201}
		if want != "" {
			s.status, s.want = 422, detail(10008, want)
		}
		w.run(t, []step{s})
	}
	w.run(t, []step{{method: "POST", path: "/v3/apps", body: strings.Replace(cnbApp("x", `"stack": "minifs", "buildpacks": ["own"]`), `"cnb"`, `"buildpack"`, 1), status: 422,
		want: detail(10008, `Buildpack "own" for stack "minifs" must be an existing admin buildpack or a valid git URI`)}})
}

// TestUploadOfCloudNativeBuildpacks follows CC: BuildpackUploadMessage#is_archive.
func TestUploadOfCloudNativeBuildpacks(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{{method: "POST", path: "/v3/buildpacks", body: `{"name": "native", "lifecycle": "cnb"}`, status: 201, save: "native", want: `{"lifecycle": "cnb", "position": 1}`}})
	tar := make([]byte, 512)
	copy(tar[257:], "ustar\x0000")
	const wrong = `bp.cnb is not a gzip archive or cnb file. Buildpacks of lifecycle \"cnb\" must be valid gzip archives or cnb files.`
	for _, c := range []struct {
		data   []byte
		status int
		want   string
	}{
		{zipOf(t, "bin/build", ""), 422, wrong},
		{nil, 422, "bp.cnb cannot be empty"},
		{[]byte("\x1f\x8b\x08 more"), 202, `"state":"READY"`},
		{tar, 202, `"filename":"bp.cnb"`},
	} {
		if got := w.upload("admin", "/v3/buildpacks/{native}/upload", "bp.cnb", c.data); got.status != c.status || !strings.Contains(got.text, c.want) {
			t.Errorf("got %d %s; want %d %s", got.status, got.text, c.status, c.want)
		}
	}
}
