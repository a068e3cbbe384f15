package main

import (
	"strings"
	"testing"
)

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
