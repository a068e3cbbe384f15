package images

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/server/kube"
	"cupola/server/kube/apply"
	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// TestAppOnKubernetes pushes an app, renders it with its image in a registry, and runs it on a
// real node: each instance answers there as the app does here, and so does its successor after it was
// deleted.
func TestAppOnKubernetes(t *testing.T) {
	t.Parallel()
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	d := e2e.StartDaemon(t, binary)
	tree := filepath.Join(t.TempDir(), "root.tar")
	if err := os.WriteFile(tree, e2e.SmallStack(t, "tree"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := d.Run("stack", "import", "tree", tree, "--data-dir", d.Dir); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pushProfiled(d, "shop", "tree")
	d.Running("shop", "web", 1)
	d.ScaleTo("shop", 2)
	bringApp(d, n, "shop")
	was := appPods(n, "shop")
	for _, pod := range was {
		runsAsPushed(t, n, pod)
	}
	n.Delete("v1", "Pod")
	n.Until("the pods have successors", func() bool {
		is := appPods(n, "shop")
		return len(is) == 2 && !slices.ContainsFunc(is, func(pod kube.Object) bool { return !kubetest.Ready(pod) || named(was, pod.Name()) })
	})
	for _, pod := range appPods(n, "shop") {
		runsAsPushed(t, n, pod)
	}
}

// bringApp renders an app and applies its objects, until all of them are ready.
func bringApp(d *e2e.Daemon, n *kubetest.Node, app string) {
	d.T.Helper()
	file, registry := filepath.Join(d.T.TempDir(), "app.yml"), n.Registry()
	if out, err := d.Run("app", "render", app, "--registry", registry+"/team", "--plain-http", registry, "--output", file, "--with-secrets"); err != nil {
		d.T.Fatalf("%v\n%s", err, out)
	}
	text, err := os.Open(file)
	if err != nil {
		d.T.Fatal(err)
	}
	defer text.Close()
	all, err := kube.Read(text)
	if err != nil {
		d.T.Fatal(err)
	}
	cluster, err := apply.Open(apply.Config{Kubeconfig: n.Kubeconfig, Warn: func(text string) { d.T.Errorf("the cluster warns: %s", text) }})
	if err != nil {
		d.T.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.T.Context(), kubetest.Patience)
	defer cancel()
	if err := cluster.Apply(ctx, all, func(kube.Object, apply.Change) {}); err != nil {
		d.T.Fatal(err)
	}
	if err := cluster.Wait(ctx, all, func(o kube.Object, text string) { d.T.Logf("%s: %s", o.Name(), text) }); err != nil {
		d.T.Fatal(err)
	}
}

// appPods are an app's pods, those aside that are about to end.
func appPods(n *kubetest.Node, app string) (pods []kube.Object) {
	for _, pod := range n.List("v1", "Pod") {
		if pod.Label("app.kubernetes.io/name") == app && pod.Text("metadata", "deletionTimestamp") == "" {
			pods = append(pods, pod)
		}
	}
	return pods
}

func named(pods []kube.Object, name string) bool {
	return slices.ContainsFunc(pods, func(pod kube.Object) bool { return pod.Name() == name })
}

// runsAsPushed checks that a pod of the app answers and logs as its instances do here.
func runsAsPushed(t *testing.T, n *kubetest.Node, pod kube.Object) {
	t.Helper()
	body, err := n.Ask(pod, "/")
	if err != nil || !strings.Contains(body, "hello from shop") {
		t.Errorf("pod %s answers %q, %v", pod.Name(), body, err)
	}
	for container, want := range map[string]string{
		"web":        "/home/vcap/app /home/vcap/app vcap en_US.UTF-8 2000 profiled /home/vcap/deps on NAME=tree",
		"web-teller": "sidecar of profiled",
	} {
		status, log, err := n.Get("/api/v1/namespaces/" + pod.Namespace() + "/pods/" + pod.Name() + "/log?container=" + container)
		if err != nil || status != http.StatusOK || !strings.Contains(log, want) {
			t.Errorf("log of container %s of pod %s: %d, %v, %q; want %q", container, pod.Name(), status, err, log, want)
		}
	}
}
