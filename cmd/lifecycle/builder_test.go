package main

import (
	"archive/tar"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/contract"
)

// script is a buildpack script that logs its name and arguments below the
// staging directory and then runs body.
func script(body string) string {
	return "#!/bin/sh\nset -e\necho \"$(basename $0) $*\"\n" + body + "\n"
}

// named is a buildpack that says its name in config.yml.
func named(name string, more map[string]string) map[string]string {
	files := map[string]string{
		"bin/detect*": "#!/bin/sh\nexit 1\n",
		"bin/supply*": script("printf 'name: " + name + "\\nversion: 1.2\\n' > $3/$4/config.yml; echo " + name + " >> $1/order; touch $2/kept"),
	}
	maps.Copy(files, more)
	return files
}

func TestDetectTakesTheFirstThatAccepts(t *testing.T) {
	s := newStaging(t, map[string]string{"a": ""})
	s.addBuildpack("no", map[string]string{"bin/detect*": "#!/bin/sh\nexit 1\n"})
	s.addBuildpack("malformed", map[string]string{"readme": ""})
	s.addBuildpack("plain", map[string]string{"bin/detect": "#!/bin/sh\n"})
	s.addBuildpack("yes", map[string]string{"bin/detect*": "#!/bin/sh\necho Yes 1\n", "bin/compile*": script(""), "bin/release*": "#!/bin/sh\necho 'default_process_types: {web: run}'\n"})
	s.addBuildpack("late", map[string]string{"bin/detect*": "#!/bin/sh\necho Late\n"})
	out := s.mustBuild("-buildpackOrder=no,malformed,plain,missing,yes,late")
	for _, want := range []string{
		"malformed buildpack does not contain a /bin dir: malformed",
		"WARNING: buildpack script '/bin/detect' is not executable",
		"Failed to read buildpack directory",
		"compile " + s.path("app") + " " + s.path("cache/final"),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("log lacks %q:\n%s", want, out)
		}
	}
	want := contract.Result{
		LifecycleMetadata: contract.LifecycleMetadata{BuildpackKey: "yes", DetectedBuildpack: "Yes 1", Buildpacks: []contract.UsedBuildpack{{Key: "yes", Name: "Yes 1"}}},
		ProcessTypes:      map[string]string{"web": "run"}, Processes: []contract.Process{{Type: "web", Command: "run"}}, LifecycleType: "buildpack",
	}
	got := s.result()
	if said := phasesOf(got); said != "detect no!, detect plain!, detect yes, compile yes, release yes" {
		t.Errorf("got the phases %s", said)
	}
	got.Phases = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	info, err := os.ReadFile(filepath.Join(s.unpack(), "staging_info.yml"))
	if want := `{"detected_buildpack":"Yes 1","start_command":"run"}` + "\n"; err != nil || string(info) != want {
		t.Errorf("staging_info.yml: got %q, %v; want %q", info, err, want)
	}
}

// phasesOf are the scripts that ran; those that failed have a mark.
func phasesOf(r contract.Result) string {
	var all []string
	for _, p := range r.Phases {
		text := p.Name + " " + p.Buildpack
		if p.Failed {
			text += "!"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func TestSeveralBuildpacks(t *testing.T) {
	s := newStaging(t, map[string]string{"Procfile": "web: from procfile\nworker: work\n"})
	s.addBuildpack("one", named("one", map[string]string{
		"bin/supply*": script("printf 'name: one\\nversion: 1.2\\n' > $3/$4/config.yml; echo one >> $1/order; touch $2/kept\nprintf 'processes:\\n- {type: web, command: a}\\n- {type: clock, command: tick}\\n' > $3/$4/launch.yml"),
	}))
	s.addBuildpack("https://example.com/two.git#v1", map[string]string{"nested/bin/supply*": named("two", nil)["bin/supply*"]})
	s.addBuildpack("last", named("last", map[string]string{
		"bin/finalize*": script(`echo last-final >> $1/order; echo 'export A=1' > $5/a.sh; cat > $3/$4/launch.yml <<E
processes:
- {type: clock, command: tock}
- {type: proxy, command: envoy, platforms: {cloudfoundry: {sidecar_for: [web, worker]}}, limits: {memory: 64}}
E
printf 'name: last\nversion: "3"\nconfig: {entrypoint_prefix: wrap}\noutput_metadata: {k: v}\n' > $3/$4/config.yml`),
	}))
	writeFiles(t, s.path("cache"), map[string]string{"stale/x": "", "final/x": ""})
	out := s.mustBuild("-skipDetect", "-buildpackOrder=one,https://example.com/two.git#v1,last")
	for _, want := range []string{
		"supply " + s.path("app") + " " + s.path("cache/"+contract.BuildpackDir("one")) + " ",
		"/deps 1\n", "/deps 2 ", "/profile.d\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("log lacks %q:\n%s", want, out)
		}
	}
	r := s.result()
	if want := map[string]string{"web": "from procfile", "worker": "work", "clock": "tock"}; !cmp.Equal(want, r.ProcessTypes) {
		t.Errorf("got process types %v; want %v", r.ProcessTypes, want)
	}
	if want := []contract.Sidecar{{Name: "proxy", ProcessTypes: []string{"web", "worker"}, Command: "envoy", MemoryMB: 64}}; !cmp.Equal(want, r.Sidecars) {
		t.Errorf("got sidecars %v; want %v", r.Sidecars, want)
	}
	want := contract.LifecycleMetadata{BuildpackKey: "last", DetectedBuildpack: "last", Buildpacks: []contract.UsedBuildpack{
		{Key: "one", Name: "one", Version: "1.2"}, {Key: "https://example.com/two.git#v1", Name: "two", Version: "1.2"},
		{Key: "last", Name: "last", Version: "3", Config: &contract.LauncherConfig{EntrypointPrefix: "wrap"}, OutputMetadata: map[string]any{"k": "v"}},
	}}
	if diff := cmp.Diff(want, r.LifecycleMetadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	home := s.unpack()
	if order, err := os.ReadFile(filepath.Join(home, "app", "order")); err != nil || string(order) != "one\ntwo\nlast\nlast-final\n" {
		t.Errorf("got order %q, %v", order, err)
	}
	kept, err := os.ReadDir(s.path("cache"))
	if err != nil || len(kept) != 3 || slices.ContainsFunc(kept, func(e os.DirEntry) bool { return e.Name() == "stale" }) {
		t.Errorf("got cache %v, %v; want final and the two suppliers'", kept, err)
	}
}

func TestIndexIsPaddedFromTenBuildpacks(t *testing.T) {
	s := newStaging(t, nil)
	var order []string
	for i := range 10 {
		name := string(rune('a' + i))
		s.addBuildpack(name, named(name, map[string]string{"bin/finalize*": script("touch $3/$4/launch.yml")}))
		order = append(order, name)
	}
	s.mustBuild("-skipDetect", "-buildpackOrder="+strings.Join(order, ","))
	home := s.unpack()
	for _, index := range []string{"00", "09"} {
		if _, err := os.Stat(filepath.Join(home, "deps", index)); err != nil {
			t.Error(err)
		}
	}
}

func TestLastBuildpackWithoutFinalize(t *testing.T) {
	s := newStaging(t, nil)
	s.addBuildpack("a", named("a", nil))
	s.addBuildpack("b", map[string]string{"bin/compile*": script(""), "bin/release*": "#!/bin/sh\n"})
	out := s.mustBuild("-skipDetect", "-buildpackOrder=a,b")
	for _, want := range []string{
		"Warning: the last buildpack is not compatible with multi-buildpack apps",
		"No start command specified by buildpack or via Procfile.", "App will not start unless a command is provided at runtime.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("log lacks %q:\n%s", want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(s.unpack(), "deps", "1")); !os.IsNotExist(err) {
		t.Errorf("deps/1: got %v; want it gone", err)
	}
}

func TestDropletKeepsTheTree(t *testing.T) {
	s := newStaging(t, map[string]string{"b/run*": "x", "a": "1"})
	s.addBuildpack("a", named("a", map[string]string{"bin/finalize*": script("touch $3/$4/launch.yml")}))
	app := s.path("app")
	for name, target := range map[string]string{"link": "b/run", "out": "/etc/passwd", "up": "../../.."} {
		if err := os.Symlink(target, filepath.Join(app, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(app, "a"), filepath.Join(app, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(app, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.mustBuild("-skipDetect", "-buildpackOrder=a")
	var names []string
	for h := range s.entries() {
		names = append(names, h.Name)
		if h.Uid != 2000 || h.Gid != 2000 || h.Uname != "vcap" {
			t.Errorf("%s: got owner %d:%d %s; want 2000:2000 vcap", h.Name, h.Uid, h.Gid, h.Uname)
		}
		checkEntry(t, h)
	}
	want := []string{
		"./", "./deps/", "./deps/0/", "./deps/0/config.yml", "./deps/0/launch.yml", "./logs/", "./profile.d/", "./staging_info.yml", "./tmp/",
		"./app/", "./app/a", "./app/b/", "./app/b/run", "./app/hard", "./app/link", "./app/order", "./app/out", "./app/up",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// checkEntry checks the entries of TestDropletKeepsTheTree that are special.
func checkEntry(t *testing.T, h *tar.Header) {
	t.Helper()
	switch h.Name {
	case "./app/b/run":
		if h.Mode != 0o755 || h.Typeflag != tar.TypeReg {
			t.Errorf("run: got mode %o type %c", h.Mode, h.Typeflag)
		}
	case "./app/out":
		if h.Typeflag != tar.TypeSymlink || h.Linkname != "/etc/passwd" {
			t.Errorf("out: got type %c to %s; want the link itself", h.Typeflag, h.Linkname)
		}
	case "./app/hard":
		if h.Typeflag != tar.TypeLink || h.Linkname != "./app/a" {
			t.Errorf("hard: got type %c to %s; want a hard link", h.Typeflag, h.Linkname)
		}
	}
}

func TestScriptsSeeTheDatabase(t *testing.T) {
	t.Setenv("VCAP_SERVICES", `{"pg":[{"credentials":{"uri":"postgresql://u:p@h/d"}}]}`)
	s := newStaging(t, nil)
	s.addBuildpack("a", map[string]string{"bin/compile*": "#!/bin/sh\necho db is $DATABASE_URL stack $CF_STACK\n", "bin/release*": "#!/bin/sh\n"})
	if out := s.mustBuild("-skipDetect", "-buildpackOrder=a"); !strings.Contains(out, "db is postgres://u:p@h/d stack test\n") {
		t.Errorf("got %q", out)
	}
}
