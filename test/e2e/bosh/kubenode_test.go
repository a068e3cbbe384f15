package bosh

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/runtime/contract"
	"cupola/server/kube"
	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// withoutAliases makes the errand ask for the names of Services alone, which are what a cluster's DNS has.
const withoutAliases = `[{"type": "replace", "path": "/instance_groups/name=smoke-tests/jobs/name=smoke/properties/aliases?", "value": false}]`

// TestDeploymentOnKubernetesNode runs the deployment on a real node: the servers are a cluster in which all connections hear each other, their
// scripts run, a server whose pod was deleted comes back with its disk, and a privileged one writes to the node's files
// if the cluster's policy allows.
func TestDeploymentOnKubernetesNode(t *testing.T) {
	t.Parallel()
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	n.NameServer()
	k := &kubeNode{kubeDaemon{plane: n.Plane}, n}
	k.name, k.manifest, k.registry = "nats-deployment", "testdata/nats.yml", e2e.StartRegistry(t)
	k.registry.Push(t, "test-1-1", v1.Config{}, releaseImage(t), toolLayer(t))
	k.registry.Host = n.Forward(k.registry.Host)
	k.Daemon = e2e.StartDaemon(t, binary, "--plain-http", k.registry.Host)
	for index := range 2 {
		k.makeDisk(index)
	}

	k.bring(withoutAliases)
	k.logged("nats-deployment-nats-v1-0", "bosh-pre-start-nats", "start 1 of 0, 1 with this ephemeral disk")
	k.logged("nats-deployment-nats-v1-1", "bosh-pre-start-nats", "start 1 of 1, 1 with this ephemeral disk")
	k.logged("nats-deployment-setup-", "", "setting up version 1")
	k.logged("nats-deployment-setup-", "", "patched for nats-deployment")
	k.errand("smoke-1")
	k.logged("smoke-1-", "", "all 2 connections hear each other")

	was := k.pod("nats-deployment-nats-v1-1")
	n.DeleteOne("v1", "Pod", was.Name())
	n.Until("the deleted pod has a successor", func() bool {
		is := k.pod(was.Name())
		return is != nil && is.Text("metadata", "uid") != was.Text("metadata", "uid") && kubetest.Ready(is)
	})
	k.logged(was.Name(), "bosh-pre-start-nats", "start 2 of 1, 1 with this ephemeral disk")
	k.errand("smoke-2")
	k.logged("smoke-2-", "", "all 2 connections hear each other")
	k.unsafe()
}

// unsafe lets the servers be privileged and log into a directory of the node. A policy of the cluster forbids it first.
func (k *kubeNode) unsafe() {
	k.T.Helper()
	const policy = "pod-security.kubernetes.io/enforce"
	dir := k.makeDir("host")
	ops := fmt.Sprintf(`[{"type": "replace", "path": "/instance_groups/name=nats/jobs/name=nats/properties/quarks/bpm?", "value": {"processes": [{"name": "server",
		"args": ["-c", "/var/vcap/jobs/nats/config/nats.conf", "-l", "%[1]s/server.log"], "unsafe": {"privileged": true, "unrestricted_volumes": [{"path": "%[1]s", "writable": true}]}}]}}]`, dir)
	k.node.Label(map[string]any{policy: "baseline"})
	out, err := k.deploy(ops, "--to", "kubernetes", "--kubeconfig", k.plane.Kubeconfig, "-o", k.rolling(), "--host-paths", "--timeout", "10s")
	if err == nil || !strings.Contains(out, `violates PodSecurity "baseline:latest": hostPath volumes`) || !strings.Contains(out, "unsafe.privileged makes the container root's and privileged") {
		k.T.Errorf("got %v, %s; want the cluster's policy to forbid it, and a warning", err, out)
	}
	k.node.Label(map[string]any{policy: nil})
	k.bring(ops, "--host-paths")
	text, err := os.ReadFile(filepath.Join(dir, "server.log"))
	if err != nil || !strings.Contains(string(text), "Server is ready") {
		k.T.Errorf("got %q, %v in the node's directory; want the server's log", text, err)
	}
	if security := k.pod("nats-deployment-nats-v1-0").Items("spec", "containers")[0].Map("securityContext"); security["privileged"] != true {
		k.T.Errorf("got %v; want a privileged container", security)
	}
}

// toolLayer is the layer with what cupola's own containers have of it: the tools of jobs.
func toolLayer(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e2e.Repository(t), "runtime/lifecycle/bin/lifecycle"))
	if err != nil {
		t.Fatal(err)
	}
	return e2e.LayerOf(t, boshFile(strings.TrimPrefix(contract.Helper, "/"), string(text)))
}

// kubeNode is a daemon whose deployments go to a real node.
type kubeNode struct {
	kubeDaemon
	node *kubetest.Node
}

// makeDir makes a directory of the node, which all may write to.
func (k *kubeNode) makeDir(name string) string {
	k.T.Helper()
	dir := filepath.Join(filepath.Dir(k.plane.Kubeconfig), name)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		k.T.Fatal(err)
	}
	return dir
}

// makeDisk makes the volume of a server. Other volumes than directories are given to the group of the pod.
func (k *kubeNode) makeDisk(index int) {
	k.T.Helper()
	dir := k.makeDir(fmt.Sprintf("disk-%d", index))
	k.node.Create("v1", "PersistentVolume", kube.Object{"metadata": e2e.Doc{"name": filepath.Base(dir)}, "spec": e2e.Doc{"capacity": e2e.Doc{"storage": "32Mi"}, "accessModes": []any{"ReadWriteOnce"},
		"storageClassName": "fast", "hostPath": e2e.Doc{"path": dir}, "claimRef": e2e.Doc{"namespace": "nats", "name": fmt.Sprintf("nats-deployment-nats-pvc-nats-deployment-nats-v1-%d", index)}}})
}

// pod is the pod whose name begins so; nil if there is none.
func (k *kubeNode) pod(name string) kube.Object {
	k.T.Helper()
	for _, pod := range k.plane.List("v1", "Pod") {
		if strings.HasPrefix(pod.Name(), name) {
			return pod
		}
	}
	return nil
}

// logged wants a line in the log of a pod's container; "" is its only one.
func (k *kubeNode) logged(pod, container, text string) {
	k.T.Helper()
	o := k.pod(pod)
	if o == nil {
		k.T.Errorf("there is no pod %s", pod)
		return
	}
	status, log, err := k.plane.Get("/api/v1/namespaces/" + o.Namespace() + "/pods/" + o.Name() + "/log?container=" + container)
	if err != nil || status != http.StatusOK || !strings.Contains(log, text) {
		k.T.Errorf("log of container %q of pod %s: %d, %v, %q; want %q", container, o.Name(), status, err, log, text)
	}
}
