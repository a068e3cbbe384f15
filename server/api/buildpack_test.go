package api

import (
	"archive/zip"
	"bytes"
	"fmt"
	"mime/multipart"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/control/stacks"
	"cupola/store"
)

// zipOf makes a zip of files: name, content, name, content, ….
func zipOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(files[i+1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// upload sends a file as the part "bits".
func (w *world) upload(user, path, name string, data []byte) answer {
	w.t.Helper()
	return w.uploadWith(user, path, name, data, nil)
}

// uploadWith is upload with further fields.
func (w *world) uploadWith(user, path, name string, data []byte, fields map[string]string) answer {
	w.t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for key, value := range fields {
		if err := m.WriteField(key, value); err != nil {
			w.t.Fatal(err)
		}
	}
	part, err := m.CreateFormFile("bits", name)
	if err != nil {
		w.t.Fatal(err)
	}
	part.Write(data)
	m.Close()
	return w.ask(user, "POST", w.fill(path), b.String(), m.FormDataContentType())
}

func (w *world) buildpackOrder() (names []string) {
	w.write(func(tx *store.Tx) error {
		all, _, err := store.Buildpacks.List(tx, store.Query{Order: "position"})
		for i, b := range all {
			if b.Position != i+1 {
				w.t.Errorf("%s is at %d; want %d", b.Name, b.Position, i+1)
			}
			names = append(names, b.Name)
		}
		return err
	})
	return names
}

func TestBuildpacksKeepTheirOrder(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		step step
		want string
	}{
		{step{method: "GET", path: "/v3/buildpacks", status: 200, want: `{"resources": [{"name": "staticfile_buildpack", "position": 1, "state": "READY", "stack": null, "filename": "s.zip",
			"lifecycle": "buildpack", "enabled": true, "locked": false}, {"position": 2}, {"position": 3}]}`}, "static ruby go"},
		{step{method: "POST", path: "/v3/buildpacks", body: `{"name": "new", "position": 2, "enabled": true}`, status: 201, save: "new",
			want: `{"position": 2, "state": "AWAITING_UPLOAD", "filename": null, "links": {"upload": {"href": "{url}/v3/buildpacks/{new}/upload", "method": "POST"}}}`}, "static new ruby go"},
		{step{method: "PATCH", path: "/v3/buildpacks/{new}", body: `{"position": 4}`, status: 200, want: `{"position": 4}`}, "static ruby go new"},
		{step{method: "PATCH", path: "/v3/buildpacks/{new}", body: `{"position": 99}`, status: 200, want: `{"position": 4}`}, "static ruby go new"},
		{step{method: "PATCH", path: "/v3/buildpacks/{new}", body: `{"position": 1, "enabled": false}`, status: 200, want: `{"position": 1, "enabled": false}`}, "new static ruby go"},
		{step{method: "POST", path: "/v3/buildpacks", body: `{"name": "first"}`, status: 201, save: "first"}, "first new static ruby go"},
		{step{method: "DELETE", path: "/v3/buildpacks/{new}", status: 202}, "first static ruby go"},
		{step{method: "PATCH", path: "/v3/buildpacks/{first}", body: `{"position": 0}`, status: 422, want: detail(10008, "Position must be greater than or equal to 1")}, "first static ruby go"},
	} {
		w.run(t, []step{c.step})
		if got := strings.ReplaceAll(strings.Join(w.buildpackOrder(), " "), "_buildpack", ""); strings.ReplaceAll(got, "staticfile", "static") != c.want {
			t.Errorf("%s %s: got %s; want %s", c.step.method, c.step.body, got, c.want)
		}
	}
}

func TestBuildpacksThatCannotBe(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "go_buildpack"}`, status: 422, want: detail(10008, "Buildpack with name 'go_buildpack' and an unassigned stack already exists")},
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "a", "stack": "minifs"}`, status: 201, save: "a"},
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "a", "stack": "minifs"}`, status: 422, want: detail(10008, "Buildpack with name 'a', stack 'minifs' and lifecycle 'buildpack' already exists")},
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "a", "stack": "none"}`, status: 422, want: detail(10008, "Stack 'none' does not exist")},
		{method: "PATCH", path: "/v3/buildpacks/{a}", body: `{"stack": "host"}`, status: 422, want: detail(10008, "Buildpack stack cannot be changed")},
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "a b"}`, status: 422, want: detail(10008, "Name is invalid")},
		{method: "POST", path: "/v3/buildpacks", body: `{}`, status: 422},
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "c", "lifecycle": "x"}`, status: 422, want: detail(10008, `Lifecycle must be either "buildpack" or "cnb"`)},
		{as: "org_manager", method: "POST", path: "/v3/buildpacks", body: `{"name": "c"}`, status: 403},
		{method: "PATCH", path: "/v3/buildpacks/none", body: `{}`, status: 404, want: detail(10010, "Buildpack not found")},
	})
}

func TestBuildpackUpload(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "new"}`, status: 201, save: "new"},
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "new", "stack": "host"}`, status: 201, save: "other"},
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "locked", "locked": true}`, status: 201, save: "locked"},
	})
	good := zipOf(t, "bin/compile", "#!/bin/sh")
	upload := "/v3/buildpacks/{new}/upload"
	for _, c := range []struct {
		path   string
		data   []byte
		status int
		want   string
	}{
		{upload, []byte("no zip"), 422, `bp.zip is not a zip file. Buildpacks of lifecycle \"buildpack\" must be valid zip files.`},
		{upload, nil, 422, "bp.zip cannot be empty"},
		{upload, zipOf(t, "bin/compile", "", "../../etc/passwd", "x"), 202, `"filename":"bp.zip"`},
		{upload, zipOf(t, "readme", ""), 202, `"filename":"bp.zip"`},
		{"/v3/buildpacks/{locked}/upload", good, 422, "Buildpack is locked"},
		{"/v3/buildpacks/none/upload", good, 404, "Buildpack not found"},
		{upload, good, 202, `"filename":"bp.zip"`},
	} {
		if got := w.upload("admin", c.path, "bp.zip", c.data); got.status != c.status || !strings.Contains(got.text, c.want) {
			t.Errorf("got %d %s; want %d %s", got.status, got.text, c.status, c.want)
		}
	}
	if got := w.upload("org_manager", upload, "bp.zip", good); got.status != 403 {
		t.Errorf("got %d; want 403", got.status)
	}
	w.run(t, []step{{method: "GET", path: "/v3/buildpacks/{new}", status: 200, want: `{"state": "READY", "filename": "bp.zip"}`}})
	if left, _ := filepath.Glob(filepath.Join(w.dir, "blobs", "tmp", "*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// A manifest.yml that Cloud Controller cannot read fails the job
// (lib/cloud_controller/upload_buildpack.rb, stack_name_extractor.rb).
func TestBuildpackUploadWithABadManifest(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{{method: "POST", path: "/v3/buildpacks", body: `{"name": "new"}`, status: 201, save: "new"}})
	for _, c := range []struct {
		data []byte
		want string
	}{
		{zipOf(t, "manifest.yml", "stack: ["), "buildpack manifest is not valid"},
		{zipOf(t, "manifest.yml", strings.Repeat("#", 1<<20+1)), "buildpack manifest is too large"},
		{[]byte("PK\x03\x04 and no directory"), "buildpack zipfile is not valid"},
	} {
		got := w.upload("admin", "/v3/buildpacks/{new}/upload", "bp.zip", c.data)
		if got.status != 202 {
			t.Fatalf("got %d %s; want 202", got.status, got.text)
		}
		w.run(t, []step{{method: "GET", path: strings.TrimPrefix(got.header.Get("Location"), w.url), status: 200,
			want: fmt.Sprintf(`{"state": "FAILED", "errors": [{"code": 390013, "title": "CF-BuildpackZipError", "detail": "Buildpack zip error: %s"}]}`, c.want)}})
	}
	w.run(t, []step{{method: "GET", path: "/v3/buildpacks/{new}", status: 200, want: `{"state": "AWAITING_UPLOAD", "filename": null}`}})
}

// The stack of a buildpack's manifest decides; one that does not suit fails the
// job.
func TestBuildpackUploadWithAStack(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "new"}`, status: 201, save: "new"},
		{method: "POST", path: "/v3/buildpacks", body: `{"name": "new", "stack": "host"}`, status: 201},
	})
	for _, c := range []struct{ stack, want string }{
		{"none", `{"state": "FAILED", "errors": [{"code": 390012, "title": "CF-BuildpackStackDoesNotExist", "detail": "Uploaded buildpack stack (none) does not exist"}]}`},
		{"host", `{"state": "FAILED", "errors": [{"code": 290000, "detail": "The buildpack name new is already in use for the stack host and the lifecycle buildpack"}]}`},
		{"minifs", `{"state": "COMPLETE", "errors": [], "operation": "buildpack.upload"}`},
		{"host", `{"state": "FAILED", "errors": [{"code": 390011, "detail": "Uploaded buildpack stack (host) does not match minifs"}]}`},
	} {
		got := w.upload("admin", "/v3/buildpacks/{new}/upload", "bp.zip", zipOf(t, "bin/compile", "", "manifest.yml", fmt.Sprintf("stack: %s\n", c.stack)))
		job := got.header.Get("Location")
		w.run(t, []step{{method: "GET", path: strings.TrimPrefix(job, w.url), status: 200, want: c.want}})
	}
}

func TestSeedsKeepWhatAnOperatorSet(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "GET", path: "/v3/buildpacks?names=ruby_buildpack", status: 200},
	})
	var ruby string
	w.write(func(tx *store.Tx) error {
		b, err := store.Buildpacks.By(tx, "names", "ruby_buildpack")
		ruby = b[0].GUID
		return err
	})
	w.saved["ruby"] = ruby
	w.run(t, []step{{method: "PATCH", path: "/v3/buildpacks/{ruby}", body: `{"position": 1, "enabled": false, "locked": true}`, status: 200}})
	w.write(func(tx *store.Tx) error {
		return stacks.OfferBuildpacks(tx, []stacks.SystemBuildpack{{Name: "staticfile_buildpack", Filename: "s.zip", Digest: "s1"}, {Name: "ruby_buildpack", Filename: "r2.zip", Digest: "r2"}, {Name: "python_buildpack", Filename: "p.zip", Digest: "p1"}})
	})
	w.run(t, []step{{method: "GET", path: "/v3/buildpacks/{ruby}", status: 200, want: `{"position": 1, "enabled": false, "locked": true, "filename": "r2.zip"}`}})
	want := []string{"ruby_buildpack", "staticfile_buildpack", "go_buildpack", "python_buildpack"}
	if d := cmp.Diff(want, w.buildpackOrder()); d != "" {
		t.Error(d)
	}
	// One that a later release brings comes before the next of its order.
	w.write(func(tx *store.Tx) error {
		return stacks.OfferBuildpacks(tx, []stacks.SystemBuildpack{{Name: "java_buildpack", Filename: "j.zip", Digest: "j1"}, {Name: "absent_buildpack", Filename: "a.zip", Digest: "a1"}, {Name: "go_buildpack", Filename: "g.zip", Digest: "g1"}})
	})
	want = []string{"ruby_buildpack", "staticfile_buildpack", "java_buildpack", "absent_buildpack", "go_buildpack", "python_buildpack"}
	if d := cmp.Diff(want, w.buildpackOrder()); d != "" {
		t.Error(d)
	}
}
