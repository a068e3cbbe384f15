//go:build linux

package lifecycle

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
)

func TestBuildpacksAreDeterministicZips(t *testing.T) {
	first, second := Buildpacks(), Buildpacks()
	if len(first) == 0 {
		t.Fatal("got no system buildpacks")
	}
	for i, b := range first {
		if !bytes.Equal(b.Zip, second[i].Zip) {
			t.Errorf("%s: two zips differ", b.Name)
		}
		r, err := zip.NewReader(bytes.NewReader(b.Zip), int64(len(b.Zip)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := r.Open("bin/detect")
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: bin/detect has mode %v, %v; want 0755", b.Name, info.Mode(), err)
		}
	}
}

func TestStagesLoneExecutable(t *testing.T) {
	s := newStaging(t, map[string]string{"run me*": "#!/bin/sh\necho ran as $0; echo $HOME\n", "data.txt": "x"})
	out := s.mustBuild("-buildpackOrder=" + s.addSystem())
	if !strings.Contains(out, "-----> binary 1.0.0") && !strings.Contains(out, "only executable") {
		t.Errorf("got log %q", out)
	}
	r := s.result()
	if got, want := r.ProcessTypes["web"], "./'run me'"; got != want {
		t.Errorf("got start command %q; want %q", got, want)
	}
	if got := r.LifecycleMetadata; got.DetectedBuildpack != "binary" || got.BuildpackKey != "binary_buildpack" || got.Buildpacks[0].Version != "1.0.0" {
		t.Errorf("got metadata %+v", got)
	}
	a := start(t, s.unpack(), "")
	if err := a.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, a.out.String())
	}
	if got := a.out.String(); !strings.Contains(got, "Invoking pre-start scripts.\nInvoking start command.\nran as ./run me\n") {
		t.Errorf("got output %q", got)
	}
}

func TestStagesStaticSite(t *testing.T) {
	s := newStaging(t, map[string]string{
		"Staticfile": "root: site\npushstate: enabled\n", "site/index.html": "<h1>hello</h1>", "site/a.txt": "A", "secret": "no",
	})
	s.mustBuild("-buildpackOrder=" + s.addSystem())
	if got := s.result().LifecycleMetadata.DetectedBuildpack; got != "staticfile" {
		t.Fatalf("got buildpack %q; want staticfile", got)
	}
	a := start(t, s.unpack(), "")
	for path, want := range map[string]string{"/": "<h1>hello</h1>", "/a.txt": "A", "/secret": "<h1>hello</h1>", "/../secret": "<h1>hello</h1>"} {
		if code, body := a.get(path); code != 200 || body != want {
			t.Errorf("GET %s: got %d %q; want 200 %q", path, code, body, want)
		}
	}
}
