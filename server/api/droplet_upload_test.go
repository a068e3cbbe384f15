package api

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

// tgzOf makes a gzipped tar of files: name, content, name, content, ….
func tgzOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o755, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(files[i+1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z.Close()
	return b.Bytes()
}

func TestDropletUpload(t *testing.T) {
	w := newWorld(t)
	app := `"relationships": {"app": {"data": {"guid": "app-1"}}}`
	w.run(t, []step{
		{method: "POST", path: "/v3/droplets", body: `{` + app + `}`, status: 201, save: "new",
			want: `{"state": "AWAITING_UPLOAD", "process_types": {"web": ""}, "stack": "minifs", "links": {"upload": {"href": "{url}/v3/droplets/{new}/upload", "method": "POST"}}}`},
		{method: "POST", path: "/v3/droplets", body: `{"relationships": {"app": {"data": {"guid": "none"}}}}`, status: 422, want: detail(10008, `App with guid "none" does not exist, or you do not have access to it.`)},
		{method: "POST", path: "/v3/droplets", body: `{"process_types": {"": "x"}, ` + app + `}`, status: 422, want: detail(10008, "Process types key must not be empty")},
		{method: "PATCH", path: "/v3/apps/app-1/relationships/current_droplet", body: `{"data": {"guid": "{new}"}}`, status: 422},
	})
	good := tgzOf(t, "./app/run", "x")
	for _, c := range []struct {
		name   string
		data   []byte
		status int
		want   string
	}{
		{"d.zip", good, 422, "Uploaded droplet file is invalid: d.zip is not a tgz"},
		{"d.tgz", nil, 422, "d.tgz cannot be empty"},
		{"d.tgz", tgzOf(t, "../x", ""), 422, "Uploaded droplet file is invalid: ../x"},
		{"d.tgz", good, 202, "STAGED"},
		{"d.tgz", good, 422, "Droplet may be uploaded only once. Create a new droplet to upload bits."},
	} {
		if got := w.upload("space_developer", "/v3/droplets/{new}/upload", c.name, c.data); got.status != c.status || !strings.Contains(got.text, c.want) {
			t.Errorf("got %d %s; want %d %s", got.status, got.text, c.status, c.want)
		}
	}
	w.run(t, []step{
		{method: "PATCH", path: "/v3/apps/app-1/relationships/current_droplet", body: `{"data": {"guid": "{new}"}}`, status: 200},
		{method: "POST", path: "/v3/droplets?source_guid={new}", body: `{` + app + `}`, status: 201, want: `{"state": "STAGED"}`},
		{method: "POST", path: "/v3/droplets?source_guid=none", body: `{` + app + `}`, status: 404, want: detail(10010, "Droplet not found")},
	})
	got := w.ask("admin", "GET", w.fill("/v3/droplets/{new}/download"), "", "")
	if got.status != 200 || got.text != strings.TrimSpace(string(good)) {
		t.Errorf("got %d and %d bytes; want the droplet", got.status, len(got.text))
	}
}
