package sandbox

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cupola/server/bosh"
	"cupola/server/bosh/manifest"
	"cupola/test/goprogram"
)

// writeLayout writes an image of one layer as an OCI layout.
func writeLayout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	blob := func(media string, content []byte) map[string]any {
		t.Helper()
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		name := filepath.Join(dir, "blobs", "sha256", sum)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return map[string]any{"mediaType": media, "digest": "sha256:" + sum, "size": len(content)}
	}
	text := func(v any) []byte {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for name, content := range files {
		h := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if to, is := strings.CutPrefix(content, "-> "); is {
			h.Typeflag, h.Linkname, h.Size, content = tar.TypeSymlink, to, 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const media = "application/vnd.oci.image."
	l := blob(media+"layer.v1.tar", layer.Bytes())
	config := blob(media+"config.v1+json", text(map[string]any{"architecture": runtime.GOARCH, "os": "linux", "rootfs": map[string]any{"type": "layers", "diff_ids": []any{l["digest"]}}}))
	m := blob(media+"manifest.v1+json", text(map[string]any{"schemaVersion": 2, "mediaType": media + "manifest.v1+json", "config": config, "layers": []any{l}}))
	for name, content := range map[string][]byte{
		"oci-layout": text(map[string]any{"imageLayoutVersion": "1.0.0"}),
		"index.json": text(map[string]any{"schemaVersion": 2, "manifests": []any{m}}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestImages(t *testing.T) {
	s := newSandbox(t, Config{})
	image := manifest.Image{Local: true, Reference: writeLayout(t, map[string]string{
		"var/vcap/jobs-src/nats/job.MF":                  "templates: {nats.conf.erb: config/nats.conf}",
		"var/vcap/jobs-src/nats/templates/nats.conf.erb": "port: 1",
		"var/vcap/jobs-src/evil/spec":                    "templates: {passwd: bin/x}",
		"var/vcap/jobs-src/evil/templates/passwd":        "-> /etc/passwd",
		"var/vcap/jobs-src/worse/spec":                   "templates: {passwd: bin/x}",
		"var/vcap/jobs-src/worse/templates/passwd":       "-> ../../../../../../../../../../../etc/passwd",
		"var/vcap/packages/ruby-3/bin/ruby":              "#!/bin/sh",
	})}
	images := s.NewImages(nil)
	defer func() {
		if err := images.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 2 {
		j, err := images.Job(t.Context(), image, "nats")
		if err != nil || string(j.Templates[0].Content) != "port: 1" {
			t.Fatalf("got %+v, %v", j, err)
		}
	}
	for _, evil := range []string{"evil", "worse"} {
		if j, err := images.Job(t.Context(), image, evil); err == nil {
			t.Errorf("%s: got %q", evil, j.Templates[0].Content)
		}
	}
	if all := images.All(); len(all) != 1 || all[0] != images.Pinned(image) {
		t.Errorf("got %v", all)
	}
	ruby, found, err := s.Ruby(t.Context(), images.All()...)
	if want := (Interpreter{images.Pinned(image), "/var/vcap/packages/ruby-3/bin/ruby"}); ruby == nil || err != nil || found != want {
		t.Errorf("got %v, %v; want %v", found, err, want)
	}
	none := manifest.Image{Local: true, Reference: "/no/such"}
	if _, err := images.Job(t.Context(), none, "nats"); err == nil || images.Pinned(none) != "" {
		t.Errorf("got %v for an image that is not there", err)
	}
}

// TestPatched has scripts change a job, and nothing else.
func TestPatched(t *testing.T) {
	s := newSandbox(t, Config{Time: 10 * time.Second})
	file := filepath.Join(t.TempDir(), "sh")
	if err := goprogram.Build("", "cupola/cmd/lifecycle", file); err != nil {
		t.Fatal(err)
	}
	sh, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	image := manifest.Image{Local: true, Reference: writeLayout(t, map[string]string{
		"bin/sh":                        string(sh),
		"var/vcap/jobs-src/nats/job.MF": "templates: {nats.conf.erb: config/nats.conf}",
		"var/vcap/jobs-src/nats/templates/nats.conf.erb": "port: 1",
	})}
	images := s.NewImages(nil)
	defer func() {
		if err := images.Close(); err != nil {
			t.Error(err)
		}
	}()
	const template = "/nats/templates/nats.conf.erb"
	j, err := s.Patched(t.Context(), images, image, "nats", bosh.Patch{Release: "rel", Scripts: []bosh.Script{
		{Name: "first", Text: "echo port: 2 > /var/vcap/all-releases/jobs-src/rel" + template},
		{Name: "second", Text: "echo more >> /var/vcap/jobs-src" + template},
	}})
	if err != nil || string(j.Templates[0].Content) != "port: 2\nmore\n" {
		t.Errorf("got %+v, %v", j, err)
	}
	if j, err = images.Job(t.Context(), image, "nats"); err != nil || string(j.Templates[0].Content) != "port: 1" {
		t.Errorf("got %+v, %v; want the image as it was", j, err)
	}
	_, err = s.Patched(t.Context(), images, image, "nats", bosh.Patch{Release: "rel", Scripts: []bosh.Script{{Name: "pre_render_scripts.jobs[0]", Text: "echo no such line >&2; exit 3"}}})
	if want := "pre_render_scripts.jobs[0]: the script ended with status 3: no such line"; err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
}

func TestReference(t *testing.T) {
	for image, want := range map[manifest.Image]string{{Reference: "docker.io/a/b:c"}: "docker://docker.io/a/b:c", {Reference: "/dir", Local: true}: "oci:/dir"} {
		if got := referenceOf(image); got != want {
			t.Errorf("got %s; want %s", got, want)
		}
	}
}
