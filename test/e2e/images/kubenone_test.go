package images

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
	"cupola/test/loopback"
)

// fewRights runs a program as root with the capabilities that containers have elsewhere, which are too few for containers of its own.
const fewRights = `#!/bin/sh
[ "$1" = serve ] || exec %[1]s "$@"
exec setpriv --bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+mknod,+setfcap,+sys_chroot --inh-caps=-all %[1]s "$@"
`

// capSysAdmin is a bit of capabilities (capabilities(7)).
const capSysAdmin = 1 << 21

// TestAppOnKubernetesCellAlone runs a daemon that has no containers of its own, and not the rights to have any: apps are staged and run on
// the cluster unasked, and what cannot be is refused with its reason. Its registry is behind an address that is not its own.
func TestAppOnKubernetesCellAlone(t *testing.T) {
	t.Parallel()
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	few := filepath.Join(t.TempDir(), "cupola")
	if err := os.WriteFile(few, fmt.Appendf(nil, fewRights, binary), 0o755); err != nil {
		t.Fatal(err)
	}
	registry := freeAddress(t, n.Host())
	cluster := "edge=" + n.Account()
	own := freeAddress(t, "127.0.0.1")
	loopback.Forward(t, registry, func() string { return own })
	none, clusters := []string{"--cells", "none"}, []string{"--kubernetes", cluster, "--kubernetes-registry", registry, "--kubernetes-registry-listen", own}
	d := e2e.StartDaemon(t, few, slices.Concat(none, clusters)...)
	n.Trust(registry, filepath.Join(d.Dir, "ca.pem"))
	checkFewRights(t, d)
	if out, err := exec.Command("setpriv", "--bounding-set=-sys_admin,-net_admin", binary, "doctor", "--cells", "none", "--kubernetes", cluster, "--http", "127.0.0.1:0", "--https", "off").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "would take pods") || strings.Contains(string(out), "overlayfs") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	if out, err := d.Run("cells"); err != nil || !strings.Contains(out, "edge") || strings.Contains(out, "cupola ") {
		t.Errorf("the cells are %v\n%s", err, out)
	}
	pushProfiled(d, "shop", "minifs")
	d.Logged("shop", "/home/vcap/app /home/vcap/app vcap en_US.UTF-8 2000 profiled")
	d.Logged("shop", "Uploading complete")
	d.Answers("shop", "hello from shop")
	d.Tells(t, "shop", `echo "$FROM_PROFILE of $(pwd)"`, "profiled of /home/vcap/app")
	was := e2e.GUIDs(d.Running("shop", "web", 1))
	d.Kill()
	d.Start()
	if is := e2e.GUIDs(d.Running("shop", "web", 1)); !slices.Equal(is, was) {
		t.Errorf("the next daemon has the instances %v; want %v", is, was)
	}
	d.ScaleTo("shop", 2)
	deploysNot(t, d)
	checkFewRights(t, d)
	was = e2e.GUIDs(d.Running("shop", "web", 2))
	d.Kill()

	// The same data directory has cells of its own, until none again: then its containers would be nobody's.
	d.Binary, d.Flags = binary, clusters
	d.Start()
	if is := e2e.GUIDs(d.Running("shop", "web", 2)); !slices.Equal(is, was) {
		t.Errorf("the daemon with cells has the instances %v; want %v", is, was)
	}
	pushProfiled(d, "here", "minifs")
	d.Running("here", "web", 1)
	d.Kill()
	out, err := d.Run(slices.Concat([]string{"serve", "--data-dir", d.Dir, "--http", "127.0.0.1:0", "--https", "off"}, none, clusters)...)
	if err == nil || !strings.Contains(out, "1 containers of "+d.Dir+" run on this machine") {
		t.Errorf("a daemon without cells takes the data directory of containers: %v\n%s", err, out)
	}
	d.Start()
	d.Deleted("here")
	d.Deleted("shop")
	n.Until("nothing is left of the app", func() bool { return len(n.List("v1", "Pod"))+len(n.List("v1", "Secret")) == 0 })
}

// checkFewRights checks that the daemon could not have containers, and has mounted nothing.
func checkFewRights(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "CapEff:")
	caps, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	if err != nil || caps&capSysAdmin != 0 || caps == 0 {
		t.Errorf("the daemon has the capabilities %x, %v", caps, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), d.Dir) {
		t.Errorf("there are mounts in the data directory, %v:\n%s", err, mounts)
	}
}

// deploysNot deploys by BOSH, which says why it is not done.
func deploysNot(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yml")
	const manifest = "name: nothing\nreleases: [{name: nats, version: '1', url: 'docker://registry.invalid', stemcell: {os: minifs, version: '1'}}]\nstemcells: [{alias: default, os: minifs, version: '1'}]\nupdate: {canaries: 1, max_in_flight: 1, canary_watch_time: 1000, update_watch_time: 1000}\ninstance_groups: [{name: nats, instances: 1, azs: [z1], stemcell: default, vm_type: small, networks: [{name: default}], jobs: [{name: nats, release: nats}]}]\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := d.Run("deployment", "deploy", "-f", file)
	if err == nil || !strings.Contains(out, "it was started with --cells none") {
		t.Errorf("got %v\n%s", err, out)
	}
}
