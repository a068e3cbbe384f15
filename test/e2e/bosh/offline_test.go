package bosh

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
	"cupola/test/goprogram"
)

// noRoot runs the program as a user who is not root, without a daemon.
type noRoot struct {
	*testing.T
	binary, dir string
}

func startOffline(t *testing.T) *noRoot {
	t.Helper()
	n := &noRoot{t, e2e.NeedBinary(t), t.TempDir()}
	if _, err := exec.LookPath("ruby"); err != nil {
		t.Skip("needs ruby in PATH")
	}
	for dir := n.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// run returns what a command printed, and its exit code.
func (n *noRoot) run(args ...string) (string, int) {
	n.Helper()
	cmd := exec.CommandContext(n.Context(), n.binary, append([]string{"deployment"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "TMPDIR=" + n.dir}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		n.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (n *noRoot) must(args ...string) string {
	n.Helper()
	out, code := n.run(args...)
	if code != 0 {
		n.Fatalf("%v: exit code %d\n%s", args, code, out)
	}
	return out
}

// TestOfflineFiles renders the files of a release's jobs, with the names of a
// cloud-config and a runtime-config, and compares manifests.
func TestOfflineFiles(t *testing.T) {
	t.Parallel()
	n := startOffline(t)
	runtime := filepath.Join(n.dir, "runtime.yml")
	ops := filepath.Join(n.dir, "ops.yml")
	for path, text := range map[string]string{runtime: "tags: {site: here}\n", ops: "- {type: replace, path: /instance_groups/0/jobs/0/properties/greeting, value: good day}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(n.dir, "out")
	args := []string{"render", "-f", "testdata/demo.yml", "--release", "testdata/release", "--runtime-config", runtime, "--to", "files", "--output", out}
	if text, code := n.run(args...); code == 0 || !strings.Contains(text, "rendered files hold secrets: give --with-secrets") {
		t.Errorf("got %d\n%s", code, text)
	}
	n.must(append(args, "--with-secrets")...)
	file := filepath.Join(out, "web/0/web/bin/pre-start")
	text, err := os.ReadFile(file)
	info, serr := os.Stat(file)
	if err != nil || serr != nil || !strings.Contains(string(text), "hello") || info.Mode().Perm() != 0o600 {
		t.Errorf("got %q, %v, %v, %v", text, info, err, serr)
	}
	if text, code := n.run("diff", "-f", "testdata/demo.yml", "-o", ops, "--against", "testdata/demo.yml"); code != 2 || !strings.Contains(text, "good day") {
		t.Errorf("got %d\n%s", code, text)
	}
	if text, code := n.run("diff", "-f", "testdata/demo.yml", "--against", "testdata/demo.yml"); code != 0 || !strings.Contains(text, "Nothing changes.") {
		t.Errorf("got %d\n%s", code, text)
	}
	if text, code := n.run("render", "-f", "testdata/demo.yml", "--offline"); code == 0 || !strings.Contains(text, "release 'demo/latest' is not here: give its tarball or its directory with --release") {
		t.Errorf("got %d\n%s", code, text)
	}
}

// TestOfflineObjects renders Kubernetes objects of a release image twice: what has not
// changed stays the same, and no secret is shown.
func TestOfflineObjects(t *testing.T) {
	t.Parallel()
	n := startOffline(t)
	registry := e2e.StartRegistry(t)
	registry.Push(t, "test-1-1", v1.Config{}, releaseImage(t))
	noScripts := filepath.Join(n.dir, "ops.yml")
	if err := os.WriteFile(noScripts, []byte("- {type: remove, path: /instance_groups/name=setup}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(n.dir, "objects.yml")
	with := func(verb string, args ...string) []string {
		return append([]string{verb, "-f", "testdata/nats.yml", "-o", noScripts, "-v", "registry=" + registry.Host, "-v", "registry_user=" + e2e.RegistryUser,
			"-v", "registry_password=" + e2e.RegistryPassword, "--offline"}, args...)
	}
	n.must(with("render", "--output", out, "--with-secrets")...)
	first, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(first), "kind: StatefulSet") {
		t.Fatalf("got %s, %v", first, err)
	}
	n.must(with("render", "--output", out, "--with-secrets")...)
	if again, err := os.ReadFile(out); err != nil || string(again) != string(first) {
		t.Errorf("the output has changed, although nothing else has (%v)", err)
	}
	if text, code := n.run(with("diff", "--against", out)...); code != 0 || !strings.Contains(text, "Nothing changes.") {
		t.Errorf("got %d\n%s", code, text)
	}
	text, code := n.run(with("diff", "--against", out, "-o", n.changed())...)
	if code != 2 || !strings.Contains(text, "~ StatefulSet nats-deployment-nats-v1") || strings.Contains(text, "data:") {
		t.Errorf("got %d\n%s", code, text)
	}
	if text, code := n.run(with("render")[:len(with("render"))-1]...); code == 0 {
		t.Errorf("got %s; want that there is no daemon", text)
	}
	out = n.must(with("render")...)
	if strings.Contains(out, "\ndata:") || strings.Contains(out, e2e.RegistryPassword) {
		t.Errorf("got secrets:\n%s", out)
	}
}

// changed is an ops file that changes a property.
func (n *noRoot) changed() string {
	n.Helper()
	path := filepath.Join(n.dir, "changed.yml")
	if err := os.WriteFile(path, []byte(change("version", 2)), 0o644); err != nil {
		n.Fatal(err)
	}
	return path
}

// engineImage makes a release image with a shell for podman, and returns how a manifest names it.
func engineImage(t *testing.T) (url string) {
	t.Helper()
	podman, err := exec.LookPath("podman")
	if err != nil {
		t.Skip("needs podman")
	}
	dir := t.TempDir()
	if err := goprogram.Build("", "cupola/cmd/lifecycle", filepath.Join(dir, "bin/sh")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"job.MF":             "name: web\ntemplates: {web.conf: config/web.conf, bpm.yml: config/bpm.yml}\n",
		"templates/web.conf": "name=<%= spec.name %>\n", "templates/bpm.yml": "processes: [{name: web, executable: /bin/sh}]\n",
	} {
		path := filepath.Join(dir, "var/vcap/jobs-src/web", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"ln", "mkdir", "sed"} {
		if err := os.Symlink("sh", filepath.Join(dir, "bin", tool)); err != nil {
			t.Fatal(err)
		}
	}
	url = "localhost/cupola-e2e-" + strings.ToLower(rand.Text())
	image := url + "/r:o-1-1"
	t.Cleanup(func() { _ = exec.Command(podman, "rmi", "--force", image).Run() })
	tar := exec.Command("sh", "-c", "tar -c . | "+podman+" import - "+image)
	tar.Dir = dir
	out, err := tar.CombinedOutput()
	if err == nil {
		out, err = exec.Command(podman, "run", "--rm", "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", image, "/bin/sh", "-c", "true").CombinedOutput()
	}
	if err != nil {
		t.Skipf("podman runs no containers here: %v\n%s", err, out)
	}
	return url
}

// TestOfflinePreRender runs scripts before templates are rendered, in a container of podman.
func TestOfflinePreRender(t *testing.T) {
	t.Parallel()
	binary, dir := e2e.NeedBinary(t), t.TempDir()
	url := engineImage(t)
	manifest := func(script string) string {
		path := filepath.Join(dir, "manifest.yml")
		text, err := json.Marshal(e2e.Doc{
			"name": "d", "releases": []e2e.Doc{{"name": "r", "version": "1", "url": url, "stemcell": e2e.Doc{"os": "o", "version": "1"}}},
			"instance_groups": []e2e.Doc{{"name": "g", "instances": 1, "jobs": []e2e.Doc{{
				"name": "web", "release": "r", "properties": e2e.Doc{"quarks": e2e.Doc{"pre_render_scripts": e2e.Doc{"jobs": []string{script}}}}},
			}}},
		})
		if err := errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	render := func(script string) (string, error) {
		out, err := exec.CommandContext(t.Context(), binary, "deployment", "render", "-f", manifest(script), "--offline", "--to", "files", "--with-secrets", "--output", filepath.Join(dir, "out")).CombinedOutput()
		return string(out), err
	}
	out, err := render("cd /var/vcap/all-releases/jobs-src/r/web/templates && sed -i s/name/patched/ web.conf && echo more >> web.conf")
	text, rerr := os.ReadFile(filepath.Join(dir, "out/g/0/web/config/web.conf"))
	if err != nil || rerr != nil || string(text) != "patched=g\nmore\n" {
		t.Errorf("got %v, %v, %q\n%s", err, rerr, text, out)
	}
	if out, err := render("exit 3"); err == nil || !strings.Contains(out, "pre_render_scripts.jobs[0]: exit code 3") {
		t.Errorf("got %v\n%s; want that the script failed", err, out)
	}
}
