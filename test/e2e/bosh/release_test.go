package bosh

import (
	"archive/tar"
	"bytes"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/server/bosh/create"
	"cupola/test/e2e"
)

// releaseDaemon is a daemon for deployments of uploaded releases.
type releaseDaemon struct {
	*boshDaemon
	dir string // of the release
}

func startReleases(t *testing.T) *releaseDaemon {
	t.Helper()
	binary := e2e.NeedBinary(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler on this machine")
	}
	d := &releaseDaemon{&boshDaemon{Daemon: e2e.StartDaemon(t, binary, "--allow-loopback", "--stemcell-stack", "ubuntu-jammy=host")}, filepath.Join(t.TempDir(), "demo")}
	if err := os.CopyFS(d.dir, os.DirFS("testdata/release")); err != nil {
		t.Fatal(err)
	}
	return d
}

// deployWith deploys the manifest, changed by operations.
func (d *releaseDaemon) deployWith(ops ...e2e.Doc) (string, error) {
	d.T.Helper()
	return d.withOps("deploy", ops...)
}

// withOps runs a command for the manifest, changed by operations.
func (d *releaseDaemon) withOps(verb string, ops ...e2e.Doc) (string, error) {
	d.T.Helper()
	text, err := json.Marshal(append([]e2e.Doc{}, ops...))
	file := filepath.Join(d.T.TempDir(), "ops.yml")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		d.T.Fatal(err)
	}
	return d.Run("deployment", verb, "-f", "testdata/demo.yml", "-o", file)
}

func replace(path string, value any) e2e.Doc {
	return e2e.Doc{"type": "replace", "path": path, "value": value}
}

// edit changes a file of the release.
func (d *releaseDaemon) edit(name, old, now string) {
	d.T.Helper()
	path := filepath.Join(d.dir, name)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.ReplaceAll(text, []byte(old), []byte(now)), 0o600)
	}
	if err != nil {
		d.T.Fatal(err)
	}
}

// tarball writes the release's tarball, and returns it with its digest.
func (d *releaseDaemon) tarball(version string) (path, digest string) {
	d.T.Helper()
	dir, err := create.Open(d.dir)
	var out bytes.Buffer
	if err == nil {
		err = dir.Write(create.Identity{Name: "demo", Version: version}, &out)
	}
	path = filepath.Join(d.T.TempDir(), "demo-"+version+".tgz")
	if err == nil {
		err = os.WriteFile(path, out.Bytes(), 0o600)
	}
	if err != nil {
		d.T.Fatal(err)
	}
	return path, fmt.Sprintf("%x", sha1.Sum(out.Bytes()))
}

// answers waits until all instances answer with a greeting.
func (d *releaseDaemon) answers(count int, greeting string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		var all []instanceView
		d.API("GET", "/v1/deployments/demo/instances", nil, &all)
		if len(all) != count {
			return fmt.Sprintf("there are %d instances; want %d", len(all), count)
		}
		for _, i := range all {
			res, err := http.Get("http://" + i.Address + ":8080/")
			if err != nil {
				return err.Error()
			}
			text, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || strings.TrimSpace(string(text)) != greeting {
				return fmt.Sprintf("%s/%d answers %q, %v; want %q", i.Group, i.Index, text, err, greeting)
			}
		}
		return ""
	})
}

// TestUploadedRelease takes a deployment of a release through its life: from a
// directory, a tarball and a URL, to further versions, more instances, and its end.
func TestUploadedRelease(t *testing.T) {
	t.Parallel()
	d := startReleases(t)
	if out, err := d.deployWith(); err == nil || !strings.Contains(out, "Release 'demo' doesn't exist; upload it with 'cupola deployment upload-release'") {
		t.Errorf("got %v\n%s\nwant that there is no release", err, out)
	}
	if out := d.must(d.Run("deployment", "upload-release", d.dir)); !strings.Contains(out, "demo/0+dev.1: 1 job, 2 packages") {
		t.Errorf("got %s", out)
	}
	if out := d.must(d.Run("deployment", "upload-release", d.dir)); !strings.Contains(out, "demo/0+dev.1 is there already") {
		t.Errorf("got %s", out)
	}
	out := d.must(d.deployWith())
	for _, want := range []string{"Compiling packages: greeting/", "Compiling packages: server/"} {
		if !strings.Contains(out, want) {
			t.Errorf("got %s; want %s", out, want)
		}
	}
	d.answers(1, "hello")

	d.edit("src/server/server.c", "Content-Length", "X-Version: 2\\r\\nContent-Length")
	path, digest := d.tarball("2")
	if out, err := d.Run("deployment", "upload-release", path, "--sha1", strings.Repeat("0", 40)); err == nil || !strings.Contains(out, "Release SHA1 does not match the expected SHA1") {
		t.Errorf("got %v\n%s\nwant another digest refused", err, out)
	}
	files := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(path))))
	defer files.Close()
	from := replace("/releases/0", e2e.Doc{"name": "demo", "version": "2", "url": files.URL + "/demo-2.tgz", "sha1": strings.Repeat("0", 40)})
	if out, err := d.deployWith(from); err == nil || !strings.Contains(out, "release 'demo/2': Release SHA1 does not match") {
		t.Errorf("got %v\n%s\nwant another digest refused", err, out)
	}
	d.answers(1, "hello")
	from["value"].(e2e.Doc)["sha1"] = digest
	out = d.must(d.deployWith(from, replace("/instance_groups/0/instances", 2), replace("/instance_groups/0/jobs/0/properties/greeting", "hello again")))
	if strings.Contains(out, "Compiling packages: greeting/") || !strings.Contains(out, "Compiling packages: server/") || !strings.Contains(out, "Downloading release: demo/2") {
		t.Errorf("got %s; want only the changed package compiled", out)
	}
	d.answers(2, "hello again")
	if out, err := d.Run("deployment", "delete-release", "demo/2"); err == nil || !strings.Contains(out, "Release 'demo/2' is still in use by: demo") {
		t.Errorf("got %v\n%s\nwant it in use", err, out)
	}
	d.must(d.Run("deployment", "delete-release", "demo/0+dev.1"))
	d.must(d.Run("deployment", "restart", "demo"))
	d.answers(2, "hello again")
	if out := d.must(d.Run("deployment", "inspect-release", "demo/2")); !strings.Contains(out, "Used by demo.") || !strings.Contains(out, "host") {
		t.Errorf("got %s", out)
	}
	d.badCanary(from)
	d.must(d.Run("deployment", "delete", "demo"))
	d.must(d.Run("deployment", "delete-release", "demo/2"))
}

// badCanary deploys processes that crash as soon as they run, and are started again: the
// canary fails, and the other instance stays as it is.
func (d *releaseDaemon) badCanary(from e2e.Doc) {
	d.T.Helper()
	two := replace("/instance_groups/0/instances", 2)
	out, err := d.deployWith(from, two, replace("/instance_groups/0/jobs/0/properties/executable?", "/bin/false"), replace("/instance_groups/0/update/canary_watch_time", "1000-8000"))
	if err == nil || !strings.Contains(out, "is not running after update. Review logs for failed jobs: web") || strings.Contains(out, "web/1 (") {
		d.T.Errorf("got %v\n%s\nwant the canary to fail, and no other instance changed", err, out)
	}
	d.must(d.deployWith(from, two))
	d.answers(2, "hello")
}

// TestCompiledRelease deploys a release that came compiled: nothing is compiled.
func TestCompiledRelease(t *testing.T) {
	t.Parallel()
	d := startReleases(t)
	source, _ := d.tarball("3")
	d.must(d.Run("deployment", "upload-release", d.compiled(source)))
	if out := d.must(d.deployWith()); strings.Contains(out, "Compiling packages") {
		t.Errorf("got %s; want nothing compiled", out)
	}
	d.answers(1, "hello")
	other := replace("/stemcells/0/os", "windows2019")
	if out, err := d.deployWith(other); err == nil || !strings.Contains(out, "it has no source code and is compiled for [ubuntu-jammy] only") {
		t.Errorf("got %v\n%s\nwant the stemcell refused", err, out)
	}
}

// TestExportedRelease exports a release, again after a kill of the daemon, and deploys it
// on an empty daemon: nothing is compiled there.
func TestExportedRelease(t *testing.T) {
	t.Parallel()
	d := startReleases(t)
	source, _ := d.tarball("4")
	d.must(d.Run("deployment", "upload-release", source))
	d.must(d.deployWith())
	if out, err := d.Run("deployment", "export-release", "demo", "demo/5", "ubuntu-jammy/1.5"); err == nil || !strings.Contains(out, "Release version 'demo/5' not found in deployment 'demo'; it has demo/4") {
		t.Errorf("got %v\n%s\nwant the release refused", err, out)
	}
	dir := t.TempDir()
	d.must(d.Run("deployment", "export-release", "demo", "demo/4", "ubuntu-jammy/1.5", "--dir", dir))
	file := filepath.Join(dir, "demo-4-ubuntu-jammy-1.5.tgz")
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d.Kill()
	d.Start()
	d.must(d.Run("deployment", "export-release", "demo", "demo/4", "ubuntu-jammy/1.5", "--dir", dir, "--job", "web"))
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the second export is other than the first: %d and %d bytes, %v", len(first), len(again), err)
	}
	empty := startReleases(t)
	empty.must(empty.Run("deployment", "upload-release", file))
	if out := empty.must(empty.deployWith()); strings.Contains(out, "Compiling packages") {
		t.Errorf("got %s; want nothing compiled", out)
	}
	empty.answers(1, "hello")
	if out := empty.must(empty.Run("deployment", "export-release", "demo", "demo/4", "ubuntu-jammy/1.5", "--dir", t.TempDir())); strings.Contains(out, "Compiling packages") {
		t.Errorf("got %s; want a compiled release exported as it is", out)
	}
	if out, err := empty.Run("deployment", "export-release", "demo", "demo/4", "ubuntu-noble/1.5"); err == nil || !strings.Contains(out, "it has no source code and is compiled for [ubuntu-jammy] only") {
		t.Errorf("got %v\n%s\nwant the stemcell refused", err, out)
	}
}

// compiled makes a compiled release of a source release, by this machine's compiler.
func (d *releaseDaemon) compiled(source string) string {
	d.T.Helper()
	dir := d.T.TempDir()
	script := fmt.Sprintf(`set -e
cd %[1]s && tar xzf %[2]s
mkdir -p compiled_packages out/bin src && tar xzf packages/greeting.tgz -C src && tar xzf packages/server.tgz -C src
cc -Isrc/greeting -o out/bin/server src/server/server.c src/greeting/greeting.c
tar czf compiled_packages/server.tgz -C out . && rm -r packages
sum=$(sha256sum compiled_packages/server.tgz | cut -d' ' -f1)
job=$(sha256sum jobs/web.tgz | cut -d' ' -f1)
cat > release.MF <<END
{name: demo, version: "3", commit_hash: x, uncommitted_changes: false, jobs: [{name: web, version: j, fingerprint: j, sha1: sha256:$job}],
compiled_packages: [{name: server, version: s, fingerprint: s, sha1: sha256:$sum, stemcell: ubuntu-jammy/1.1, dependencies: []}]}
END
tar czf compiled.tgz release.MF jobs compiled_packages`, dir, source)
	if out, err := exec.Command("bash", "-c", script).CombinedOutput(); err != nil {
		d.T.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "compiled.tgz")
}

// TestCompilationFails shows why a packaging script failed, and that a kill of the
// daemon in the middle of a compilation only delays it.
func TestCompilationFails(t *testing.T) {
	t.Parallel()
	d := startReleases(t)
	d.edit("packages/server/packaging", "mkdir -p", "echo out of luck; exit 7; mkdir -p")
	d.must(d.Run("deployment", "upload-release", d.dir))
	out, err := d.deployWith()
	for _, want := range []string{"compile package 'server/", "the packaging script ended with status 7", "out of luck", "The whole output is in "} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("got %v\n%s\nwant %q", err, out, want)
		}
	}
	d.edit("packages/server/packaging", "echo out of luck; exit 7; mkdir -p", "sleep 15; mkdir -p")
	d.must(d.Run("deployment", "upload-release", d.dir))
	d.killedInTheMiddle()
	d.answers(1, "hello")

	d.edit("packages/server/packaging", "sleep 15; mkdir -p", "rm -rf /var/vcap/packages/server; ln -s /etc /var/vcap/packages/server; exit; mkdir -p")
	d.must(d.Run("deployment", "upload-release", d.dir))
	if out, err := d.deployWith(); err == nil || !strings.Contains(out, "has made /var/vcap/packages/server something else than a directory") {
		t.Errorf("got %v\n%s\nwant the link refused", err, out)
	}
	d.answers(1, "hello")
}

func (d *releaseDaemon) killedInTheMiddle() {
	d.T.Helper()
	manifest, err := os.ReadFile("testdata/demo.yml")
	if err != nil {
		d.T.Fatal(err)
	}
	var task struct{ ID int }
	d.API("POST", "/v1/deployments", e2e.Doc{"manifest": string(manifest)}, &task)
	e2e.Eventually(d.T, time.Minute, func() string {
		var t struct{ Events []struct{ Subject string } }
		d.API("GET", fmt.Sprintf("/v1/deployment_tasks/%d", task.ID), nil, &t)
		if n := len(t.Events); n == 0 || !strings.HasPrefix(t.Events[n-1].Subject, "server/") {
			return fmt.Sprintf("nothing is compiled: %+v", t.Events)
		}
		return ""
	})
	d.Kill()
	d.Start()
	d.must(d.Run("deployment", "task", fmt.Sprint(task.ID)))
}

// TestHostileRelease uploads what is not a release.
func TestHostileRelease(t *testing.T) {
	t.Parallel()
	d := startReleases(t)
	file := filepath.Join(t.TempDir(), "hostile.tgz")
	for want, content := range map[string][]byte{
		"the release is not a whole tarball": []byte("no tar, and a little longer than nothing"),
		"Release manifest not found":         e2e.LayerOf(t, e2e.TarEntry{Header: tar.Header{Name: "../../release.MF", Mode: 0o644}, Content: []byte("name: x")}),
	} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := d.Run("deployment", "upload-release", file); err == nil || !strings.Contains(out, want) {
			t.Errorf("got %v\n%s\nwant %q", err, out, want)
		}
	}
}
