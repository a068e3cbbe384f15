package images

import (
	"archive/tar"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// buildpackLayer is a layer with Cloud Native Buildpacks, as pack writes it: by absolute
// names. files are by their path below /cnb/buildpacks.
func buildpackLayer(t *testing.T, files map[string]string) []byte {
	t.Helper()
	dirs := map[string]bool{}
	var entries []e2e.TarEntry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		name := "/cnb/buildpacks/" + name
		var missing []e2e.TarEntry
		for dir := path.Dir(name); dir != "/" && !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
			missing = append(missing, e2e.TarEntry{Header: tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}})
		}
		slices.Reverse(missing)
		text := files[strings.TrimPrefix(name, "/cnb/buildpacks/")]
		entries = append(append(entries, missing...), e2e.TarEntry{Header: tar.Header{Name: name, Mode: 0o755}, Content: []byte(text)})
	}
	return e2e.LayerOf(t, entries...)
}

// pushBuildpacks pushes an image of buildpacks of which one is the image's own.
func pushBuildpacks(t *testing.T, r *e2e.ImageRegistry, tag, id string, layers ...[]byte) (image, digest string) {
	t.Helper()
	label, err := json.Marshal(e2e.Doc{"id": id, "version": "1"})
	if err != nil {
		t.Fatal(err)
	}
	digest = r.Push(t, tag, v1.Config{Labels: map[string]string{"io.buildpacks.buildpackage.metadata": string(label)}}, layers...)
	return "docker://" + r.Host + "/stacks/small:" + tag, digest
}

func buildpackTOML(id, more string) string {
	return "api = \"0.10\"\n[buildpack]\nid = \"" + id + "\"\nversion = \"1\"\nsbom-formats = [\"application/vnd.cyclonedx+json\"]\n" + more
}

// wordBuildpack provides a word, in a layer that it caches.
var wordBuildpack = map[string]string{
	"test_word/1/buildpack.toml": buildpackTOML("test/word", ""),
	"test_word/1/bin/detect":     "#!/bin/sh\necho '[[provides]]' >\"$2\"\necho 'name = \"word\"' >>\"$2\"\n",
	"test_word/1/bin/build": `#!/bin/sh
set -e
if [ -f "$1/word/env.launch/WORD.override" ]; then
  echo the layer was reused
else
  echo the layer is new
  mkdir -p "$1/word/env.launch" "$1/word/exec.d"
  printf layered >"$1/word/env.launch/WORD.override"
  printf '#!/bin/sh\necho "SAID = \\"$WORD\\"" >&3\n' >"$1/word/exec.d/say"
  chmod +x "$1/word/exec.d/say"
  echo '{"bomFormat": "CycloneDX"}' >"$1/word.sbom.cdx.json"
fi
echo '[types]
launch = true
cache = true' >"$1/word.toml"
`,
}

// appBuildpack starts the program of the app, and requires the word.
var appBuildpack = map[string]string{
	"test_app/1/buildpack.toml": buildpackTOML("test/app", ""),
	"test_app/1/bin/detect":     "#!/bin/sh\nif [ ! -f hello ]; then echo there is no hello; exit 100; fi\necho '[[requires]]' >\"$2\"\necho 'name = \"word\"' >>\"$2\"\n",
	"test_app/1/bin/build": `#!/bin/sh
echo "GREETING is $GREETING"
echo '[[processes]]
type = "serve"
command = ["./hello"]
default = true
[[processes]]
type = "worker"
command = ["sh", "-c", "echo worker $WORD $SAID; exec sleep 1000"]' >"$1/launch.toml"
`,
}

// allBuildpack is a composite one: its first group does not fit, its second does.
var allBuildpack = map[string]string{
	"test_all/1/buildpack.toml": buildpackTOML("test/all", `
[[order]]
[[order.group]]
id = "test/app"
version = "1"
[[order]]
[[order.group]]
id = "test/word"
version = "1"
[[order.group]]
id = "test/app"
version = "1"
`),
}

// cnbApp is an app of the lifecycle cnb, to be pushed by its manifest.
func cnbApp(t *testing.T, name string, credentials e2e.Doc, buildpacks ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), e2e.HelloProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	app := e2e.Doc{"name": name, "memory": "64M", "disk_quota": "256M", "lifecycle": "cnb", "buildpacks": buildpacks, "env": e2e.Doc{"GREETING": "hi"}}
	if credentials != nil {
		app["cnb-credentials"] = credentials
	}
	e2e.WriteManifest(t, dir, app)
	return dir
}

// TestCloudNativeBuildpacks pushes an app by a composite buildpack of a private registry.
func TestCloudNativeBuildpacks(t *testing.T) {
	t.Parallel()
	r := e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--registry-ca", r.CA)
	image, digest := pushBuildpacks(t, r, "all", "test/all", buildpackLayer(t, wordBuildpack), buildpackLayer(t, appBuildpack), buildpackLayer(t, allBuildpack))
	dir := cnbApp(t, "native", credentialsOf(r), image)
	if out, err := d.Run("push", dir); err == nil || !strings.Contains(out, "Feature Disabled: diego_cnb") {
		t.Fatalf("push without the feature flag: got %v\n%s", err, out)
	}
	d.Flag("diego_cnb", true)
	if out, err := d.Run("push", dir); err != nil {
		t.Fatalf("push: %v\n%s\n%s", err, out, strings.Join(d.Client().LogLines(t.Context(), d.App("native")), "\n"))
	}
	d.Answers("native", "hello from native")
	for _, line := range []string{"Pulling buildpack " + image, "===> DETECTING", "test/word 1", "the layer is new", "GREETING is hi", "Adding cache layer 'test/word:word'"} {
		d.Logged("native", line)
	}
	nativeDroplet(d)
	d.API("POST", "/v3/apps/"+d.App("native")+"/processes/worker/actions/scale", e2e.Doc{"instances": 1}, nil)
	d.Logged("native", "worker layered layered")
	d.Tells(t, "native", "cat ../layers/sbom/launch/test_word/word/sbom.cdx.json", `{"bomFormat": "CycloneDX"}`)

	officialPush(d, image, dir)

	// The second push takes the layer of the first, and needs the registry no longer.
	if err := os.WriteFile(filepath.Join(dir, "changed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Vanish(t)
	if out, err := d.Run("push", dir); err != nil {
		t.Fatalf("push without the registry: %v\n%s", err, out)
	}
	d.Logged("native", "using that of the last staging")
	d.Logged("native", `Restoring data for "test/word:word" from cache`)
	d.Logged("native", "the layer was reused")
	d.Answers("native", "hello from native")

	// The registry alone decides whether another app may have an image that was pulled with credentials.
	if out, err := d.Run("push", cnbApp(t, "offline", nil, strings.TrimSuffix(image, ":all")+"@"+digest)); err == nil || !strings.Contains(out, "was not pulled") {
		t.Errorf("push by a digest, without credentials and the registry: %v\n%s", err, out)
	}
}

// officialPush pushes a directory by the official CLI, which gets the credentials by a variable.
func officialPush(d *e2e.Daemon, image, dir string) {
	d.T.Helper()
	if _, err := exec.LookPath("cf"); err != nil {
		d.T.Log("without the official CLI")
		return
	}
	credentials := `{"` + strings.Split(image, "/")[2] + `": {"username": "` + e2e.RegistryUser + `", "password": "` + e2e.RegistryPassword + `"}}`
	official(d, []string{"CF_CNB_REGISTRY_CREDS=" + credentials}, []string{"push", "official", "-p", dir, "--no-manifest", "-m", "64M", "-k", "256M", "--lifecycle", "cnb", "-b", image})
	d.Answers("official", "hello from official")
	if out := official(d, nil, []string{"ssh", "official", "-k", "-c", `/tmp/lifecycle/launcher -- 'echo of a session: $WORD $SAID'`}); !strings.Contains(out, "of a session: layered layered") {
		d.T.Errorf("cf ssh: got %s", out)
	}
}

// official runs commands of the official CLI, of which none may fail or show the registry's password. It returns what the last one prints.
func official(d *e2e.Daemon, env []string, commands ...[]string) (output string) {
	d.T.Helper()
	env = append(append(os.Environ(), "CF_HOME="+d.T.TempDir()), env...)
	for _, args := range append([][]string{{"api", d.Client().API}, {"auth", "admin", e2e.AdminPassword}, {"target", "-o", "cupola", "-s", "dev"}}, commands...) {
		cmd := exec.Command("cf", args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if output = string(out); err != nil || strings.Contains(output, e2e.RegistryPassword) {
			d.T.Fatalf("cf %v: %v, or it shows the password\n%s", args, err, out)
		}
	}
	return output
}

// TestNativeExample pushes the example as its README.md says.
func TestNativeExample(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"python3", "cf"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the example needs " + program)
		}
	}
	d, dir, archive := e2e.StartDaemon(t, e2e.NeedBinary(t)), e2e.Example(t, "cnb"), filepath.Join(t.TempDir(), "hello.tgz")
	if out, err := exec.Command("tar", "-czf", archive, "-C", filepath.Join(dir, "buildpack"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	official(d, nil, []string{"enable-feature-flag", "diego_cnb"}, []string{"create-buildpack", "hello", archive, "1", "--lifecycle", "cnb"}, []string{"push", "-f", filepath.Join(dir, "manifest.yml")})
	d.Answers("hello-native", "A page by a Cloud Native Buildpack")
	d.Logged("hello-native", "The page server is new")
	official(d, nil, []string{"restage", "hello-native"})
	d.Logged("hello-native", "The page server is that of the last staging")
}

// nativeDroplet checks what the API says of the app and its droplet.
func nativeDroplet(d *e2e.Daemon) {
	d.T.Helper()
	var app struct {
		Lifecycle struct {
			Type string
			Data struct{ Credentials string }
		}
	}
	d.API("GET", "/v3/apps/"+d.App("native"), nil, &app)
	if app.Lifecycle.Type != "cnb" || app.Lifecycle.Data.Credentials != "***" {
		d.T.Errorf("got the app's lifecycle %+v", app.Lifecycle)
	}
	var droplet struct {
		Lifecycle    struct{ Type string }
		ProcessTypes map[string]string `json:"process_types"`
		Buildpacks   []struct{ Name, Version string }
	}
	d.API("GET", "/v3/apps/"+d.App("native")+"/droplets/current", nil, &droplet)
	want := map[string]string{"web": "./hello", "serve": "./hello", "worker": "sh -c echo worker $WORD $SAID; exec sleep 1000"}
	if droplet.Lifecycle.Type != "cnb" || !maps.Equal(droplet.ProcessTypes, want) || len(droplet.Buildpacks) != 2 || droplet.Buildpacks[0].Name != "test/word" {
		d.T.Errorf("got the droplet %+v; want the process types %v", droplet, want)
	}
}

// TestCloudNativeFailures are pushes that fail, each with its cause.
func TestCloudNativeFailures(t *testing.T) {
	t.Parallel()
	r := e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--registry-ca", r.CA)
	d.Flag("diego_cnb", true)
	word, _ := pushBuildpacks(t, r, "word", "test/word", buildpackLayer(t, wordBuildpack))
	app, _ := pushBuildpacks(t, r, "app", "test/app", buildpackLayer(t, appBuildpack))
	r.Push(t, "plain", v1.Config{}, e2e.SmallStack(t, "plain"))
	plain := "docker://" + r.Host + "/stacks/small:plain"
	tests := []struct {
		name, id, log string
		buildpacks    []string
		credentials   e2e.Doc
	}{
		{"lacks", "CNBDetectFailed - cnb: detecting failed", `test/app@1 requires "word", which no buildpack before it provides`, []string{app}, credentialsOf(r)},
		{"unused", "CNBDetectFailed", `test/word@1 provides "word", which no buildpack requires`, []string{word}, credentialsOf(r)},
		{"denied", "CNBDownloadBuildpackFailed - cnb: downloading buildpacks failed", "was not pulled", []string{word, app}, nil},
		{"plain", "CNBDownloadBuildpackFailed", "it is not an image of a Cloud Native Buildpack", []string{plain}, credentialsOf(r)},
	}
	for _, test := range tests {
		out, err := d.Run("push", cnbApp(t, test.name, test.credentials, test.buildpacks...))
		if err == nil || !strings.Contains(out, test.id) {
			t.Errorf("%s: got %v; want %q\n%s", test.name, err, test.id, out)
		}
		d.Logged(test.name, test.log)
	}
	if out, err := d.Run("push", cnbApp(t, "both", credentialsOf(r), word, app)); err != nil {
		t.Errorf("two buildpacks in order: %v\n%s", err, out)
	}
	d.Running("both", "web", 1)
}

// withToken answers those who have the token.
func withToken(token string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// TestCloudNativeArchive stages by a buildpack that is an archive by HTTP, with a token, on an image as stack.
func TestCloudNativeArchive(t *testing.T) {
	t.Parallel()
	r := e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--registry-ca", r.CA)
	d.Flag("diego_cnb", true)
	d.Flag("diego_custom_stacks", true)
	r.Push(t, "stack", v1.Config{}, e2e.SmallStack(t, "custom"))
	public, _ := e2e.NewOutside(t).Serve(t, withToken("a-token", e2e.Zipped(map[string]string{
		"buildpack.toml": buildpackTOML("test/zip", ""),
		"bin/detect":     "#!/bin/sh\n",
		"bin/build":      "#!/bin/sh\necho staged on $(cat /etc/os-release)\necho '[[processes]]\ntype = \"web\"\ncommand = [\"./hello\"]' >\"$1/launch.toml\"\n",
	})))
	credentials := credentialsOf(r)
	host, _, _ := strings.Cut(strings.TrimPrefix(public, "http://"), ":")
	credentials[host] = e2e.Doc{"token": "a-token"}
	dir := cnbApp(t, "zipped", credentials, public+"/bp")
	if out, err := d.Run("push", dir, "--stack", "docker://"+r.Host+"/stacks/small:stack"); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.Answers("zipped", "hello from zipped")
	d.Logged("zipped", "staged on NAME=custom")
}

// TestNativeImage runs an image that pack built: its label has the process types, and a program starts each.
func TestNativeImage(t *testing.T) {
	t.Parallel()
	r := e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--registry-ca", r.CA)
	d.Flag("diego_docker", true)
	worker := "#!/bin/sh\necho the worker of $CNB_APP_DIR; exec sleep 1000\n"
	r.Push(t, "packed", v1.Config{Entrypoint: []string{"/cnb/process/web"}, Env: []string{"PATH=/bin", "CNB_APP_DIR=/workspace"},
		Labels: map[string]string{"io.buildpacks.build.metadata": `{"processes": [{"type": "web", "command": ["hello"]}, {"type": "worker", "command": ["x"]}]}`}},
		e2e.SmallStack(t, "packed"), e2e.LayerOf(t,
			e2e.TarEntry{Header: tar.Header{Name: "cnb/process/web", Mode: 0o755}, Content: e2e.HelloProgram(t)},
			e2e.TarEntry{Header: tar.Header{Name: "cnb/process/worker", Mode: 0o755}, Content: []byte(worker)}))
	if fault := d.PushDocker(t, "packed", r.Host+"/stacks/small:packed", e2e.RegistryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.MapRoute(t, "packed")
	d.Running("packed", "web", 1)
	d.Answers("packed", "hello from packed")
	var droplet struct {
		ProcessTypes map[string]string `json:"process_types"`
	}
	d.API("GET", "/v3/apps/"+d.App("packed")+"/droplets/current", nil, &droplet)
	if want := map[string]string{"web": "/cnb/process/web", "worker": "/cnb/process/worker"}; !maps.Equal(droplet.ProcessTypes, want) {
		t.Errorf("got the process types %v; want %v", droplet.ProcessTypes, want)
	}
	d.API("POST", "/v3/apps/"+d.App("packed")+"/processes/worker/actions/scale", e2e.Doc{"instances": 1}, nil)
	d.Logged("packed", "the worker of /workspace")
}

// soloBuildpack starts the program of the app, in an environment of its layer.
var soloBuildpack = map[string]string{
	"solo/1/buildpack.toml": buildpackTOML("solo", ""),
	"solo/1/bin/detect":     "#!/bin/sh\n",
	"solo/1/bin/build": `#!/bin/sh
echo '[types]
launch = true' >"$1/solo.toml"
echo '[[processes]]
type = "web"
command = ["sh", "-c", "echo starts in $PWD on $PORT; exec ./hello"]' >"$1/launch.toml"
`,
}

// TestNativeAppBecomesAnImage pushes an app's droplet as an image, which does what the app does.
func TestNativeAppBecomesAnImage(t *testing.T) {
	r := e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--registry-ca", r.CA)
	for _, flag := range []string{"diego_cnb", "diego_docker", "diego_custom_stacks"} {
		d.Flag(flag, true)
	}
	r.Push(t, "base", v1.Config{}, e2e.SmallStack(t, "base"))
	solo, _ := pushBuildpacks(t, r, "solo", "solo", buildpackLayer(t, soloBuildpack))
	if out, err := d.Run("push", cnbApp(t, "solo", credentialsOf(r), solo), "--stack", "docker://"+r.Host+"/stacks/small:base"); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.Logged("solo", "starts in /home/vcap/workspace on 8080")
	_, image := renders(d, "solo", r)
	if fault := d.PushDocker(t, "copy", image, e2e.RegistryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.MapRoute(t, "copy")
	d.Answers("copy", "hello from copy")
	d.Logged("copy", "starts in /home/vcap/workspace on 8080")
}
