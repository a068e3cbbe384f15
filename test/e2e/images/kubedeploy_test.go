package images

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cupola/server/kube"
	"cupola/server/kube/access"
	"cupola/server/kube/deploy"
	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// TestAppOnKubernetesCellAroundIt runs cupola itself in a cluster, of the objects that `kubectl apply -k server/kube/deploy` makes and
// the image that `make image` makes, with the rights that they give: it is asked by its Services, an app is pushed and runs as a pod
// beside it. It is killed, and its pod deleted: it comes back with its data, and the app's pods go on.
func TestAppOnKubernetesCellAroundIt(t *testing.T) {
	t.Parallel()
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	archive := filepath.Join(t.TempDir(), "cupola.oci.tar")
	if out, err := exec.Command("../../../.ci/image", binary, archive).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n.Import(archive)
	apps, system := n.In(access.Namespace), n.In(deploy.Namespace)
	applyCupola(t, n)
	n.Services()
	d := &e2e.Daemon{T: t, Binary: binary, Addr: system.Service("cupola") + ":80", Log: &e2e.LogBuffer{}, Admin: &e2e.AdminSession{}}
	cupolaReady(t, system, "")
	n.Trust(net.JoinHostPort(system.Service("cupola-registry"), "5443"), filepath.Join(volumeOf(n), "data/ca.pem"))

	pushProfiled(d, "shop", "minifs")
	d.Answers("shop", "hello from shop")
	d.ScaleTo("shop", 2)
	was := e2e.GUIDs(d.Running("shop", "web", 2))
	pods := func(want []string) func() bool {
		return func() bool { return slices.Equal(slices.Sorted(slices.Values(podNames(apps))), want) }
	}
	n.Until("the pods are those of the instances", pods(was))
	same := func(after string) {
		t.Helper()
		if is := e2e.GUIDs(d.Running("shop", "web", 2)); !slices.Equal(is, was) || !pods(was)() {
			t.Errorf("after %s the instances are %v, in pods %v; want %v", after, is, podNames(apps), was)
		}
		d.Answers("shop", "hello from shop")
	}

	pod := system.List("v1", "Pod")[0]
	if err := syscall.Kill(processOf(t, pod), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	n.Until("its container was started again", func() bool { return restarts(system) == 1 })
	cupolaReady(t, system, "")
	same("kill -9")

	system.Delete("v1", "Pod")
	cupolaReady(t, system, pod.Text("metadata", "uid"))
	same("its pod was deleted")
	d.ScaleTo("shop", 3) // with the registry, at the same address
	d.Tells(t, "shop", `echo "$FROM_PROFILE of $(pwd)"`, "profiled of /home/vcap/app")
	d.Deleted("shop")
	n.Until("nothing is left of the app", func() bool { return len(apps.List("v1", "Pod"))+len(apps.List("v1", "Secret")) == 0 })
}

// applyCupola makes the objects of package deploy, with a volume and the admin's password.
func applyCupola(t *testing.T, n *kubetest.Node) {
	t.Helper()
	all, err := deploy.Objects()
	if err != nil {
		t.Fatal(err)
	}
	dir := volumeOf(n)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	n.Create("v1", "PersistentVolume", kube.Object{"metadata": e2e.Doc{"name": "data"}, "spec": e2e.Doc{"capacity": e2e.Doc{"storage": "20Gi"}, "accessModes": []any{"ReadWriteOnce"},
		"storageClassName": "fast", "hostPath": e2e.Doc{"path": dir}, "claimRef": e2e.Doc{"namespace": deploy.Namespace, "name": "data-cupola-0"}}})
	for _, o := range all {
		if o.Kind() == "StatefulSet" {
			n.In(deploy.Namespace).Create("v1", "Secret", kube.Object{"metadata": e2e.Doc{"name": "cupola"}, "stringData": e2e.Doc{"CUPOLA_ADMIN_PASSWORD": e2e.AdminPassword}})
		}
		n.In(o.Namespace()).Create(o.Text("apiVersion"), o.Kind(), o)
	}
}

// volumeOf is the directory that is the daemon's volume.
func volumeOf(n *kubetest.Node) string {
	return filepath.Join(filepath.Dir(n.Kubeconfig), "volume")
}

// cupolaReady waits until the pod of the daemon is ready, which is not the one of a UID.
func cupolaReady(t *testing.T, system *kubetest.Node, not string) {
	t.Helper()
	system.Until("cupola is ready", func() bool {
		return slices.ContainsFunc(system.List("v1", "Pod"), func(o kube.Object) bool {
			return o.Text("metadata", "uid") != not && kubetest.Ready(o)
		})
	})
}

// restarts is how often the container of the daemon was started again.
func restarts(system *kubetest.Node) (n int64) {
	for _, o := range system.List("v1", "Pod") {
		for _, c := range o.Items("status", "containerStatuses") {
			n += c.Number("restartCount")
		}
	}
	return n
}

// processOf is the daemon's process in a pod, as this machine numbers it.
func processOf(t *testing.T, pod kube.Object) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		groups, _ := os.ReadFile(f)
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if strings.Contains(string(groups), pod.Text("metadata", "uid")) && strings.HasPrefix(string(command), "/usr/bin/cupola\x00serve") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal(fmt.Errorf("pod %s has no process", pod.Name()))
	return 0
}
