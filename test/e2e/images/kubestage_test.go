package images

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/server/kube"
	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// looks is a buildpack that shows what it can see of the stager, whose credentials are not for it.
const looks = `#!/bin/sh
echo "the user is $(id -u) with HOME=$HOME CF_STACK=$CF_STACK"
env | grep -q CUPOLA_STAGER && echo 'the environment has a token'
cat /proc/1/environ > /dev/null 2>&1 && echo 'the environment of the stager can be read'
cat /proc/1/mem > /dev/null 2>&1 && echo 'the memory of the stager can be read'
[ -s "$1/noise" ] && echo 'the noise is there'
echo "looked"
echo 'name: looks' > $3/$4/config.yml
`

// slow is a buildpack that takes a while.
const slow = `#!/bin/sh
echo 'staging began'
n=0
while [ $n -lt 12 ]; do sleep 1; n=$((n+1)); echo "line $n of 12"; done
echo 'staging went on'
echo 'name: slow' > $3/$4/config.yml
`

const forever = `#!/bin/sh
echo 'staging has no end'
exec sleep 1000
`

const released = "#!/bin/sh\necho 'default_process_types: {web: sleep 1000}'\n"

// TestAppOnKubernetesCellStages stages apps in pods of a cluster: with the log and the errors of this machine's stagings, through the end of
// the daemon, and without leaving anything behind.
func TestAppOnKubernetesCellStages(t *testing.T) {
	t.Parallel()
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	account := n.Account()
	registry := freeAddress(t, n.Host())
	private := e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, binary, "--kubernetes", "edge="+account, "--kubernetes-registry", registry, "--registry-ca", private.CA)
	n.Trust(registry, filepath.Join(d.Dir, "ca.pem"))
	placeOn(d, "edge")
	for name, script := range map[string]string{"looks": looks, "slow": slow, "forever": forever} {
		d.AddBuildpack(name, map[string]string{"bin/supply": script, "bin/finalize": script, "bin/release": released})
	}
	pushTo(t, d, "shop", "looks")
	for _, line := range []string{"Downloading looks...", "Downloaded app package (", "the user is 2000 with HOME=/home/vcap CF_STACK=minifs", "the noise is there", "looked", "Exit status 0", "Uploaded droplet (", "Uploading complete"} {
		d.Logged("shop", line)
	}
	if log := logOf(d, "shop"); strings.Contains(log, "can be read") || strings.Contains(log, "has a token") {
		t.Errorf("buildpacks see the credentials of the stager:\n%s", log)
	}
	d.Running("shop", "web", 1)
	n.Until("the pods are those of instances", func() bool { return len(stagingPods(n))+len(n.List("v1", "Pod")) == 1 })

	checkNative(t, d, private)
	checkFaults(t, d)
	checkStagingKilled(t, d, n)
	checkStagingCancelled(t, d, n)
	d.Deleted("shop")
	n.Until("nothing is left of the apps", func() bool { return len(n.List("v1", "Pod"))+len(n.List("v1", "Secret")) == 0 })
	n.Until("no policy is left", func() bool { return len(policiesOf(n)) == 0 })
	if kept, _ := filepath.Glob(filepath.Join(d.Dir, "kubernetes", "edge", "*.staged")); len(kept) > 0 {
		t.Errorf("left: %v", kept)
	}
}

// pushTo pushes an app that does not compress, whose package is stored unpacked; it is staged by a buildpack and has no routes.
func pushTo(t *testing.T, d *e2e.Daemon, app, buildpack string) {
	t.Helper()
	if out, err := pushOne(t, d, app, buildpack); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
}

func pushOne(t *testing.T, d *e2e.Daemon, app string, buildpacks ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	noise := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	if err := os.WriteFile(filepath.Join(dir, "noise"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	e2e.WriteManifest(t, dir, e2e.Doc{"name": app, "memory": "64M", "disk_quota": "128M", "stack": "minifs", "no-route": true, "health-check-type": "process", "buildpacks": buildpacks})
	return d.Run("push", dir)
}

// logOf is the log of an app.
func logOf(d *e2e.Daemon, app string) string {
	d.T.Helper()
	return strings.Join(d.Client().LogLines(d.T.Context(), d.App(app)), "\n")
}

// stagingPods are the pods that stage.
func stagingPods(n *kubetest.Node) []kube.Object {
	return slices.DeleteFunc(n.List("v1", "Pod"), func(o kube.Object) bool { return o.Label("cupola.dev/stages") == "" })
}

// checkNative stages an app by Cloud Native Buildpacks, whose images this machine has; the second time it has a cache.
func checkNative(t *testing.T, d *e2e.Daemon, r *e2e.ImageRegistry) {
	t.Helper()
	d.Flag("diego_cnb", true)
	word := maps.Clone(wordBuildpack)
	word["test_word/1/bin/build"] = strings.ReplaceAll(word["test_word/1/bin/build"], ">&3", "") // which the shell of minifs does not know
	image, _ := pushBuildpacks(t, r, "all", "test/all", buildpackLayer(t, word), buildpackLayer(t, appBuildpack), buildpackLayer(t, allBuildpack))
	dir := cnbApp(t, "native", credentialsOf(r), image)
	e2e.WriteManifest(t, dir, e2e.Doc{"name": "native", "memory": "64M", "disk_quota": "256M", "lifecycle": "cnb", "stack": "minifs", "buildpacks": []string{image}, "env": e2e.Doc{"GREETING": "hi"}, "cnb-credentials": credentialsOf(r)})
	for _, lines := range [][]string{{"test/word 1", "the layer is new", "GREETING is hi", "Uploaded droplet ("}, {`Restoring data for "test/word:word" from cache`, "the layer was reused"}} {
		if out, err := d.Run("push", dir); err != nil {
			t.Fatalf("push: %v\n%s\n%s", err, out, logOf(d, "native"))
		}
		for _, line := range lines {
			d.Logged("native", line)
		}
		if err := os.WriteFile(filepath.Join(dir, "changed"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.Answers("native", "hello from native")
	d.Deleted("native")
}

// checkFaults has stagings fail with the errors that they have on this machine.
func checkFaults(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	d.AddBuildpack("broken", map[string]string{"bin/supply": "#!/bin/sh\n", "bin/finalize": "#!/bin/sh\necho it does not compile\nexit 7\n"})
	d.AddBuildpack("liar", map[string]string{"bin/supply": "#!/bin/sh\n", "bin/finalize": "#!/bin/sh\n(sleep 1; rm -f /tmp/droplet; mkdir /tmp/droplet) &\n", "bin/release": "#!/bin/sh\necho '{'\n"})
	for _, c := range []struct{ name, buildpack, want, log string }{
		{"no-buildpack", "", "NoAppDetectedError", "Exit status 222"},
		{"no-compile", "broken", "BuildpackCompileFailed", "it does not compile"},
		{"no-release", "liar", "BuildpackReleaseFailed", "Exit status 224"},
	} {
		var buildpacks []string
		if c.buildpack != "" {
			buildpacks = []string{c.buildpack}
		}
		if out, err := pushOne(t, d, c.name, buildpacks...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: got %v; want %s\n%s", c.name, err, c.want, out)
		}
		d.Logged(c.name, c.log)
		d.Deleted(c.name)
	}
}

// stageAgain begins to stage the app again, by a buildpack.
func stageAgain(d *e2e.Daemon, app, buildpack string) (build string) {
	d.T.Helper()
	var b struct{ GUID string }
	d.API("POST", "/v3/builds", e2e.Doc{"package": e2e.Doc{"guid": d.First("/v3/packages?app_guids=" + d.App(app))},
		"lifecycle": e2e.Doc{"type": "buildpack", "data": e2e.Doc{"buildpacks": []string{buildpack}, "stack": "minifs"}}}, &b)
	return b.GUID
}

// checkStagingKilled kills the daemon in the middle of a staging, which the next one ends: no line is lost.
func checkStagingKilled(t *testing.T, d *e2e.Daemon, n *kubetest.Node) {
	t.Helper()
	build := stageAgain(d, "shop", "slow")
	d.Logged("shop", "staging began")
	pods := stagingPods(n)
	d.Kill()
	n.Until("the stager has lines that no daemon reads", func() bool {
		_, text, err := n.Get("/api/v1/namespaces/" + pods[0].Namespace() + "/pods/" + pods[0].Name() + "/log")
		return err == nil && strings.Contains(text, "line 9 of 12")
	})
	d.Start()
	if b := d.Built(t, build); b.State != "STAGED" || b.Droplet.GUID == "" {
		t.Errorf("the build is %+v", b)
	}
	d.Logged("shop", "staging went on")
	log := logOf(d, "shop")
	for line := 1; line <= 12; line++ {
		if text := fmt.Sprintf("line %d of 12", line); !strings.Contains(log, text) {
			t.Errorf("the log lacks %q", text)
		}
	}
	if is := stagingPods(n); len(is) > 0 && is[0].Name() != pods[0].Name() {
		t.Errorf("it was staged again, in pod %s", is[0].Name())
	}
	n.Until("the pod of the staging is gone", func() bool { return len(stagingPods(n)) == 0 })
}

// checkStagingCancelled deletes an app while it is staged.
func checkStagingCancelled(t *testing.T, d *e2e.Daemon, n *kubetest.Node) {
	t.Helper()
	pushTo(t, d, "endless", "looks")
	stageAgain(d, "endless", "forever")
	d.Logged("endless", "staging has no end")
	d.Deleted("endless")
	n.Until("the staging is over", func() bool { return len(stagingPods(n)) == 0 })
}
