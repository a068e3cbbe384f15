package cnb

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"cupola/runtime/contract"
)

// TestMain lets the test program be the launcher, which becomes the process that it starts.
func TestMain(m *testing.M) {
	if os.Getenv("BE_THE_LAUNCHER") != "" {
		os.Unsetenv("BE_THE_LAUNCHER")
		os.Exit(Launch(os.Args))
	}
	os.Exit(m.Run())
}

// place is what a container has for a staging.
type place struct {
	t    *testing.T
	dir  string
	args []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("this machine has no /bin/sh")
	}
	p := &place{t: t, dir: t.TempDir()}
	p.write("workspace/app.txt", "the app")
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) write(name, text string) {
	p.t.Helper()
	file := p.path(name)
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), mode)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// buildpack writes a buildpack below a directory.
func (p *place) buildpack(dir, id, more, detect, build string) {
	p.t.Helper()
	p.write(dir+"/buildpack.toml", "api = \"0.10\"\n[buildpack]\nid = \""+id+"\"\nversion = \"1\"\n"+more)
	p.write(dir+"/bin/detect", "#!/bin/sh\nset -e\n"+detect)
	p.write(dir+"/bin/build", "#!/bin/sh\nset -e\n"+build)
}

// stage runs the builder, with sources below the place.
func (p *place) stage(sources ...string) (output string, err error) {
	p.t.Helper()
	args := append([]string{"-workspace-dir", p.path("workspace"), "-layers", p.path("layers"), "-cache-dir", p.path("cache"), "-cache-output", p.path("cache.tgz"),
		"-droplet", p.path("droplet.tgz"), "-result", p.path("result.json")}, p.args...)
	for _, s := range sources {
		args = append(args, "-buildpack", p.path(s))
	}
	f, err := parseFlags(args)
	if err != nil {
		p.t.Fatal(err)
	}
	var out bytes.Buffer
	err = (&staging{flags: f, target: target{OS: "linux", Arch: runtime.GOARCH, Distros: []distro{{"ubuntu", "22.04"}}}, out: &out}).stage()
	return out.String(), err
}

// staged is stage that must succeed.
func (p *place) staged(sources ...string) string {
	p.t.Helper()
	output, err := p.stage(sources...)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, output)
	}
	return output
}

// again begins the next staging of the app: it has nothing but the cache.
func (p *place) again() {
	p.t.Helper()
	if err := errors.Join(os.RemoveAll(p.path("layers")), os.RemoveAll(p.path("cache"))); err != nil {
		p.t.Fatal(err)
	}
	for name, text := range p.archive("cache.tgz") {
		p.write("cache/"+strings.TrimPrefix(name, "./"), text)
	}
}

// archive reads the files of a tar.gz.
func (p *place) archive(name string) map[string]string {
	p.t.Helper()
	z, err := gzip.NewReader(strings.NewReader(p.read(name)))
	if err != nil {
		p.t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		text, rerr := io.ReadAll(r)
		if err != nil || rerr != nil {
			p.t.Fatal(err, rerr)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = string(text)
		}
	}
}

// twoBuildpacks are the composite test/all, of which the group with test/runtime and test/app fits.
func (p *place) twoBuildpacks() {
	p.t.Helper()
	const at = "image/cnb/buildpacks/"
	p.write(at+"test_all/1/buildpack.toml", `api = "0.10"
[buildpack]
id = "test/all"
version = "1"
[[order]]
[[order.group]]
id = "test/never"
version = "1"
[[order]]
[[order.group]]
id = "test/runtime"
version = "1"
[[order.group]]
id = "test/never"
version = "1"
optional = true
[[order.group]]
id = "test/app"
version = "1"
`)
	p.buildpack(at+"test_never/1", "test/never", "", "exit 100", "exit 1")
	p.buildpack(at+"test_runtime/1", "test/runtime", `sbom-formats = ["application/vnd.cyclonedx+json"]`,
		"printf '[[provides]]\nname = \"runtime\"\n' >\"$CNB_BUILD_PLAN_PATH\"",
		`grep -q '^name = "runtime"' "$CNB_BP_PLAN_PATH"; grep -q 'flavour = "plain"' "$CNB_BP_PLAN_PATH"
l=$CNB_LAYERS_DIR
if [ -f "$l/rt/bin/run" ]; then
  grep -q 'made = 1' "$l/rt.toml"; ! grep -q types "$l/rt.toml"; echo reused the runtime
else
  echo made the runtime; mkdir -p "$l/rt/bin"; printf '#!/bin/sh\necho "run $1"\n' >"$l/rt/bin/run"; chmod +x "$l/rt/bin/run"
fi
printf '[types]\nlaunch = true\nbuild = true\ncache = true\n[metadata]\nmade = 1\n' >"$l/rt.toml"
mkdir -p "$l/rt/env.build" "$l/rt/env.launch/worker" "$l/rt/exec.d"; printf v >"$l/rt/env.build/BUILDING.override"
printf all >"$l/rt/env.launch/KIND.default"; printf worker >"$l/rt/env.launch/worker/KIND"; printf :more >"$l/rt/env.launch/LIST.append"
printf '#!/bin/sh\nprintf "FROM_EXECD = \\"$KIND\\"" >&3\n' >"$l/rt/exec.d/say"; chmod +x "$l/rt/exec.d/say"
echo '{}' >"$l/rt.sbom.cdx.json"
mkdir -p "$l/tool"; printf '[types]\nbuild = true\n' >"$l/tool.toml"
`)
	p.buildpack(at+"test_app/1", "test/app", "",
		"test -f app.txt || exit 100\nprintf '[[requires]]\nname = \"runtime\"\n[requires.metadata]\nflavour = \"plain\"\n' >\"$CNB_BUILD_PLAN_PATH\"",
		`test "$BUILDING" = v; test "$MINE" = yes; test -z "$HIDDEN"; command -v run; test "$CNB_TARGET_DISTRO_NAME" = ubuntu
cat >"$CNB_LAYERS_DIR/launch.toml" <<END
[[processes]]
type = "start"
command = ["run", "fast"]
default = true
[[processes]]
type = "worker"
command = ["sh", "-c", "echo \$KIND \$LIST \$FROM_EXECD"]
working-dir = "/"
[[labels]]
key = "k"
value = "v"
END
`)
}

func TestStagingAndLaunch(t *testing.T) {
	p := newPlace(t)
	p.twoBuildpacks()
	t.Setenv("MINE", "yes")
	t.Setenv("HIDDEN", "yes")
	p.args = []string{"-pass-env-var", "MINE"}
	output := p.staged("image=test/all@1")
	for _, want := range []string{"===> DETECTING\n2 of 3 buildpacks participating\ntest/runtime 1\ntest/app     1\n===> RESTORING", "made the runtime", "Adding cache layer 'test/runtime:rt'"} {
		if !strings.Contains(output, want) {
			t.Errorf("the output lacks %q:\n%s", want, output)
		}
	}
	var result contract.Result
	if err := json.Unmarshal([]byte(p.read("result.json")), &result); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"web": "run fast", "start": "run fast", "worker": "sh -c echo $KIND $LIST $FROM_EXECD"}; !maps.Equal(result.ProcessTypes, want) || result.LifecycleType != "cnb" {
		t.Errorf("got %v; want %v", result, want)
	}
	droplet := p.archive("droplet.tgz")
	for _, file := range []string{"./workspace/app.txt", "./layers/config/metadata.toml", "./layers/test_runtime/rt/bin/run", "./layers/sbom/launch/test_runtime/rt/sbom.cdx.json"} {
		if _, ok := droplet[file]; !ok {
			t.Errorf("the droplet lacks %s: %v", file, slices.Sorted(maps.Keys(droplet)))
		}
	}
	if _, ok := droplet["./layers/test_runtime/tool.toml"]; ok {
		t.Error("the droplet has a layer that is for the build only")
	}
	p.launches(t)

	p.again()
	if output := p.staged("image=test/all@1"); !strings.Contains(output, `Restoring data for "test/runtime:rt" from cache`) || !strings.Contains(output, "reused the runtime") {
		t.Errorf("the layer was not restored:\n%s", output)
	}
}

// launches starts the processes of the droplet as the launcher does.
func (p *place) launches(t *testing.T) {
	t.Helper()
	p.write("workspace/.profile", "PROFILED=yes; export PROFILED")
	tests := []struct {
		args []string
		env  string
		want string
	}{
		{nil, "", "run fast\n"},
		{[]string{"app", "run fast", ""}, "", "run fast\n"},
		{nil, "CNB_PROCESS_TYPE=worker", "worker a:more worker\n"},
		{[]string{"app", "sh -c echo $KIND $LIST $FROM_EXECD", ""}, "", "worker a:more worker\n"},
		{[]string{"app", "echo $PROFILED $KIND $(pwd) $CNB_LAYERS_DIR", ""}, "", "yes all " + p.path("workspace") + "\n"},
		{[]string{"--", "run $PROFILED"}, "", "run yes\n"},
	}
	for _, test := range tests {
		cmd := exec.Command(os.Args[0], test.args...)
		cmd.Env = []string{"BE_THE_LAUNCHER=1", "CNB_LAYERS_DIR=" + p.path("layers"), "CNB_APP_DIR=" + p.path("workspace"), "PATH=/cnb/process:" + os.Getenv("PATH"), "LIST=a", test.env}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != test.want {
			t.Errorf("launch %q %s: got %q, %v; want %q", test.args, test.env, out, err, test.want)
		}
	}
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name                string
		more, detect, build string
		code                int
		want                string
	}{
		{"does not detect", "", "echo no go files; exit 100", "", 233, "detecting failed: no group of buildpacks detected the app: a@1 did not detect the app"},
		{"fails to detect", "", "exit 3", "", 233, "a@1 failed to detect: exit status 3"},
		{"plan", "", "printf '[[requires]]\nname = \"x\"\n' >\"$CNB_BUILD_PLAN_PATH\"", "", 233, `a@1 requires "x", which no buildpack before it provides`},
		{"unused", "", "printf '[[provides]]\nname = \"x\"\n' >\"$CNB_BUILD_PLAN_PATH\"", "", 233, `a@1 provides "x", which no buildpack requires`},
		{"bad plan", "", "echo x >\"$CNB_BUILD_PLAN_PATH\"", "", 233, "line 1:"},
		{"target", "[[targets]]\nos = \"linux\"\n[[targets.distros]]\nname = \"alpine\"", "", "", 233, "it runs on linux/any alpine; the stack is linux/" + runtime.GOARCH + " ubuntu 22.04"},
		{"build", "", "", "exit 7", 234, "building failed: buildpack a@1: exit status 7"},
		{"unmet", "", "", "printf '[[unmet]]\nname = \"x\"\n' >\"$CNB_LAYERS_DIR/build.toml\"", 234, "unmet.name 'x' must match a requested dependency"},
		{"direct", "", "", "printf '[[processes]]\ntype = \"web\"\ncommand = [\"x\"]\ndirect = true\n' >\"$CNB_LAYERS_DIR/launch.toml\"", 234, "process.direct is not supported in the buildpack API 0.10"},
		{"undeclared SBOM", "", "", "echo '{}' >\"$CNB_LAYERS_DIR/launch.sbom.spdx.json\"", 234, "its sbom-formats do not have application/spdx+json"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			p.buildpack("a", "a", test.more, test.detect, test.build)
			output, err := p.stage("a")
			if err == nil || exitCode(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, exit code %d; want %q, %d\n%s", err, exitCode(err), test.want, test.code, output)
			}
			if said := strings.Contains(output, "======== Output: a@1 ========\nno go files"); said != strings.Contains(test.detect, "no go files") {
				t.Errorf("the output lacks what the buildpack said:\n%s", output)
			}
		})
	}
}

func TestRefusedBuildpacks(t *testing.T) {
	p := newPlace(t)
	p.write("none/x", "")
	p.buildpack("old", "old", "", "", "")
	p.write("old/buildpack.toml", "api = \"0.6\"\n[buildpack]\nid = \"old\"\nversion = \"1\"\n")
	p.buildpack("image/cnb/buildpacks/a/1", "a", "", "", "")
	for source, want := range map[string]string{
		"none":      "downloading buildpacks failed: it is neither a buildpack",
		"old":       `buildpack old@1 has the buildpack API "0.6"; supported are 0.7 to 0.12`,
		"image=b@2": `the package says that its buildpack is "b@2", which it does not have`,
	} {
		if _, err := p.stage(source); err == nil || exitCode(err) != 232 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", source, err, want)
		}
	}
}

// TestAutoDetect tries each buildpack alone.
func TestAutoDetect(t *testing.T) {
	p := newPlace(t)
	p.buildpack("a", "a", "", "exit 100", "")
	p.buildpack("b", "b", "", "", "echo built by b")
	p.args = []string{"-auto-detect"}
	if output := p.staged("a", "b"); !strings.Contains(output, "built by b") {
		t.Errorf("got %s", output)
	}
}

// TestProcesses are the rules of older buildpack APIs.
func TestProcesses(t *testing.T) {
	p := newPlace(t)
	p.buildpack("a", "a", "", "", "printf '[[processes]]\ntype = \"web\"\ncommand = \"echo\"\nargs = [\"$X\", \"y z\"]\n' >\"$1/launch.toml\"")
	p.write("a/buildpack.toml", "api = \"0.8\"\n[buildpack]\nid = \"a\"\nversion = \"1\"\n")
	p.staged("a")
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"BE_THE_LAUNCHER=1", "X=\"1  2\"", "CNB_LAYERS_DIR=" + p.path("layers"), "CNB_APP_DIR=" + p.path("workspace")}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "\"1  2\" y z\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

// TestPackageFile stages by a .cnb file, which is an OCI layout.
func TestPackageFile(t *testing.T) {
	p := newPlace(t)
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for name, text := range map[string]string{"buildpack.toml": "api = \"0.10\"\n[buildpack]\nid = \"f\"\nversion = \"1\"\n", "bin/detect": "#!/bin/sh\n", "bin/build": "#!/bin/sh\necho built by a file\n"} {
		h := &tar.Header{Name: "/cnb/buildpacks/f/1/" + name, Mode: 0o755, Size: int64(len(text))}
		if err := errors.Join(w.WriteHeader(h), func() error { _, err := w.Write([]byte(text)); return err }()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	blob := func(text string) string {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		p.write("file/blobs/sha256/"+sum, text)
		return `{"digest": "sha256:` + sum + `"}`
	}
	config := blob(`{"config": {"Labels": {"io.buildpacks.buildpackage.metadata": "{\"id\": \"f\", \"version\": \"1\"}"}}}`)
	p.write("file/index.json", `{"manifests": [`+blob(`{"config": `+config+`, "layers": [`+blob(layer.String())+`]}`)+`]}`)
	p.write("file/oci-layout", "{}")
	if output := p.staged("file"); !strings.Contains(output, "built by a file") {
		t.Errorf("got %s", output)
	}
	p.write("file/index.json", `{"manifests": [{"digest": "sha256:../../x"}]}`)
	if _, err := p.stage("file"); err == nil || exitCode(err) != 232 || !strings.Contains(err.Error(), `digest "sha256:../../x" is not a sha256 digest`) {
		t.Errorf("got %v", err)
	}
}

// TestCacheKeeps what a buildpack leaves of itself: the SBOM of a cached layer, and its store.toml.
func TestCacheKeeps(t *testing.T) {
	p := newPlace(t)
	p.buildpack("a", "a", `sbom-formats = ["application/spdx+json"]`, "", `l=$CNB_LAYERS_DIR
if [ -f "$l/store.toml" ]; then
  cat "$l/store.toml"
else
  printf '[metadata]\nnote = "from before"\n' >"$l/store.toml"; mkdir "$l/c"; echo '{}' >"$l/c.sbom.spdx.json"
  mkdir "$l/launched"; printf '[types]\nlaunch = true\n' >"$l/launched.toml"
fi
printf '[types]\nlaunch = true\ncache = true\n' >"$l/c.toml"
`)
	p.staged("a")
	p.again()
	if output := p.staged("a"); !strings.Contains(output, `note = "from before"`) {
		t.Errorf("store.toml was not restored:\n%s", output)
	}
	droplet := p.archive("droplet.tgz")
	if _, ok := droplet["./layers/sbom/launch/a/c/sbom.spdx.json"]; !ok {
		t.Errorf("the second droplet lacks the SBOM of the cached layer: %v", slices.Sorted(maps.Keys(droplet)))
	}
	if _, ok := droplet["./layers/a/launched.toml"]; ok {
		t.Error("a layer that is not cached was restored")
	}
}

// TestUnmet passes a requirement that the first provider leaves on to the second, and none that it meets.
func TestUnmet(t *testing.T) {
	p := newPlace(t)
	const provides = "printf '[[provides]]\\nname = \"x\"\\n[[provides]]\\nname = \"y\"\\n' >\"$2\""
	p.buildpack("a", "a", "", provides, "printf '[[unmet]]\\nname = \"x\"\\n' >\"$1/build.toml\"")
	p.buildpack("b", "b", "", provides, "sed 's/^/plan of b: /' \"$3\"")
	p.buildpack("c", "c", "", "printf '[[requires]]\\nname = \"x\"\\n[[requires]]\\nname = \"y\"\\n' >\"$2\"", "")
	if output := p.staged("a", "b", "c"); !strings.Contains(output, `plan of b: name = "x"`) || strings.Contains(output, `plan of b: name = "y"`) {
		t.Errorf("got %s", output)
	}
}

// TestAlternatives takes the first alternative of a plan that fits, and leaves an optional buildpack out whose plan does not.
func TestAlternatives(t *testing.T) {
	p := newPlace(t)
	p.write("image/cnb/buildpacks/m/1/buildpack.toml", "api = \"0.10\"\n[buildpack]\nid = \"m\"\nversion = \"1\"\n[[order]]\ngroup = [{id = \"o\", version = \"1\", optional = true}, {id = \"a\", version = \"1\"}]\n")
	p.buildpack("image/cnb/buildpacks/o/1", "o", "", "printf '[[requires]]\\nname = \"z\"\\n' >\"$2\"", "echo built by o")
	p.buildpack("image/cnb/buildpacks/a/1", "a", "", "printf '[[requires]]\\nname = \"none\"\\n[[or]]\\n[[or.provides]]\\nname = \"x\"\\n[[or.requires]]\\nname = \"x\"\\nmetadata = {f = 1.0, d = 2026-01-02}\\n' >\"$2\"", "sed 's/^/plan of a: /' \"$3\"")
	output := p.staged("image=m@1")
	if !strings.Contains(output, "1 of 2 buildpacks participating") || !strings.Contains(output, `plan of a: name = "x"`) || strings.Contains(output, "built by o") ||
		!strings.Contains(output, "plan of a: d = 2026-01-02\nplan of a: f = 1.0") {
		t.Errorf("got %s", output)
	}
}

// TestClearEnv hides the user's variables from a buildpack that wants none, and sources the profile scripts of layers for a
// process with a shell.
func TestClearEnv(t *testing.T) {
	p := newPlace(t)
	t.Setenv("MINE", "yes")
	p.args = []string{"-pass-env-var", "MINE"}
	p.buildpack("a", "a", "clear-env = true", "test -z \"$MINE\"", `test -z "$MINE"; grep -q yes "$2/env/MINE"
mkdir -p "$1/l/profile.d/worker"; echo 'A="a of all"; export A' >"$1/l/profile.d/a.sh"; echo 'A="$A, b of worker"' >"$1/l/profile.d/worker/b.sh"
printf '[types]\nlaunch = true\n' >"$1/l.toml"
printf '[[processes]]\ntype = "web"\ncommand = "echo $A"\n[[processes]]\ntype = "worker"\ncommand = "echo $A on"\n' >"$1/launch.toml"`)
	p.write("a/buildpack.toml", "api = \"0.8\"\n[buildpack]\nid = \"a\"\nversion = \"1\"\nclear-env = true\n")
	p.staged("a")
	for kind, want := range map[string]string{"web": "a of all\n", "worker": "a of all, b of worker on\n"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"BE_THE_LAUNCHER=1", "CNB_PROCESS_TYPE=" + kind, "CNB_LAYERS_DIR=" + p.path("layers"), "CNB_APP_DIR=" + p.path("workspace")}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: got %q, %v; want %q", kind, out, err, want)
		}
	}
}
