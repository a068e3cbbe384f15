package bosh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/server/kube"
	"cupola/server/kube/apply"
	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// kubeDaemon is a daemon whose deployments go to a control plane.
type kubeDaemon struct {
	boshDaemon
	plane *kubetest.Plane
}

// bring deploys the manifest, changed by operations, to the cluster, which must
// not warn of anything. It gives the objects, each with its kind, by what became
// of them.
func (k *kubeDaemon) bring(ops string, flags ...string) map[string][]string {
	k.T.Helper()
	flags = append([]string{"--to", "kubernetes", "--kubeconfig", k.plane.Kubeconfig, "-o", k.rolling()}, flags...)
	changes := map[string][]string{}
	for line := range strings.Lines(k.must(k.deploy(ops, flags...))) {
		if text, ok := strings.CutPrefix(line, "warning "); ok && !strings.HasPrefix(text, "/") { // the linter's have a path
			k.T.Errorf("the cluster warns: %s", text)
		}
		object, change, _ := strings.Cut(strings.TrimSpace(line), ": ")
		changes[change] = append(changes[change], object)
	}
	return changes
}

// rolling is a file of operations by which all servers are active: those that
// are passive are never ready, and are updated when somebody deletes them.
func (k *kubeDaemon) rolling() string {
	k.T.Helper()
	const ops = `[{"type": "remove", "path": "/instance_groups/name=nats/jobs/name=nats/properties/quarks/activePassiveProbes"}]`
	file := filepath.Join(k.T.TempDir(), "rolling.yml")
	if err := os.WriteFile(file, []byte(ops), 0o600); err != nil {
		k.T.Fatal(err)
	}
	return file
}

// versions are the servers' pods, each with the versioned Secret of its jobs.
func (k *kubeDaemon) versions() (all []string) {
	k.T.Helper()
	for _, pod := range k.plane.List("v1", "Pod") {
		for _, v := range pod.Items("spec", "volumes") {
			for _, s := range v.Items("projected", "sources") {
				if name := s.Text("secret", "name"); strings.HasPrefix(name, "nats-deployment.jobs.nats-v") {
					all = append(all, pod.Name()+" "+name)
				}
			}
		}
	}
	return all
}

func (k *kubeDaemon) wantVersions(versions ...int) {
	k.T.Helper()
	var want []string
	for i, v := range versions {
		want = append(want, fmt.Sprintf("nats-deployment-nats-v1-%d nats-deployment.jobs.nats-v%d", i, v))
	}
	if diff := cmp.Diff(want, k.versions()); diff != "" {
		k.T.Error(diff)
	}
}

// TestDeploymentOnKubernetes takes the deployment that TestDeployment runs here
// into a real control plane: all gets ready, another time nothing changes, an
// update goes to its canary first, the errand runs, what is used no longer is
// removed, and the disks stay when all else is deleted.
func TestDeploymentOnKubernetes(t *testing.T) {
	t.Parallel()
	binary := e2e.NeedBinary(t)
	k := &kubeDaemon{plane: kubetest.Start(t)}
	k.name, k.manifest, k.registry = "nats-deployment", "testdata/nats.yml", e2e.StartRegistry(t)
	k.registry.Push(t, "test-1-1", v1.Config{}, releaseImage(t))
	k.Daemon = e2e.StartDaemon(t, binary)

	first := k.bring("[]")
	if len(first["created"]) < 20 || len(first["unchanged"])+len(first["changed"]) > 0 {
		t.Errorf("got %v; want all created", first)
	}
	if again := k.bring("[]"); !slices.Equal(first["created"], again["unchanged"]) {
		t.Errorf("got %v; want all of %v unchanged", again, first["created"])
	}
	k.wantVersions(1, 1)
	k.bring(change("version", 2), "--phase", "canary")
	k.wantVersions(1, 2)
	k.bring(change("version", 2))
	k.wantVersions(2, 2)
	k.errand("smoke-1")
	k.pruned()
	k.plane.Delete("apps/v1", "StatefulSet")
	k.plane.Until("the pods are gone", func() bool { return len(k.versions()) == 0 })
	const claim = "nats-deployment-nats-pvc-nats-deployment-nats-v1-"
	if diff := cmp.Diff([]string{claim + "0 Bound", claim + "1 Bound"}, k.plane.Claims()); diff != "" {
		t.Errorf("disks:\n%s", diff)
	}
	k.overAZs()
}

// overAZs gives the servers AZs. Those that lose their instances have no pods, but the
// disks of those.
func (k *kubeDaemon) overAZs() {
	k.T.Helper()
	for _, want := range [][]string{{"z0-v1-0", "z0-v1-1", "z1-v1-0"}, {"z0-v1-0"}} {
		instances := len(want)
		k.bring(fmt.Sprintf(`[{"type": "replace", "path": "/instance_groups/name=nats/azs?", "value": ["z1", "eu-2"]}, {"type": "replace", "path": "/instance_groups/name=nats/instances", "value": %d}]`, instances))
		k.plane.Until(fmt.Sprintf("%d pods are there", instances), func() bool { return len(k.versions()) == instances })
		for n, pod := range k.versions() {
			if !strings.HasPrefix(pod, "nats-deployment-nats-"+want[n]+" ") {
				k.T.Errorf("got %s; want that of %s", pod, want[n])
			}
		}
	}
	if all := k.plane.Claims(); len(all) != 5 {
		k.T.Errorf("got the disks %v; want those of all pods that there were", all)
	}
}

// pruned takes the errand from the manifest, and with it what only it needed.
func (k *kubeDaemon) pruned() {
	k.T.Helper()
	const ops = `[{"type": "remove", "path": "/instance_groups/name=smoke-tests"}]`
	want := []string{"CronJob nats-deployment-smoke-tests", "Secret nats-deployment.bpm.smoke-tests-v1"}
	would := k.bring(ops, "--prune", "--dry-run")["would be removed"]
	removed := k.bring(ops, "--prune")["removed"]
	for _, o := range want {
		if !slices.Contains(removed, o) || !slices.Contains(would, o) {
			k.T.Errorf("got %v removed and %v told before; want %s in both", removed, would, o)
		}
	}
	if left := k.plane.List("batch/v1", "CronJob"); len(left) > 0 {
		k.T.Errorf("got %v; want no CronJob", left)
	}
	if again := k.bring(ops, "--prune")["removed"]; len(again) > 0 {
		k.T.Errorf("got %v removed the second time", again)
	}
}

// errand runs the errand from its CronJob, as a Job of a name.
func (k *kubeDaemon) errand(name string) {
	k.T.Helper()
	cluster, err := apply.Open(apply.Config{Kubeconfig: k.plane.Kubeconfig})
	if err != nil {
		k.T.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(k.T.Context(), kubetest.Patience)
	defer cancel()
	run := k.plane.Trigger(k.plane.List("batch/v1", "CronJob")[0], name)
	if err := cluster.Wait(ctx, []kube.Object{run}, func(o kube.Object, text string) { k.T.Logf("%s: %s", o.Name(), text) }); err != nil {
		k.T.Error(err)
	}
}
