package kubetest

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/server/kube"
)

// TestNode runs pods on a node, one of an image of a registry, and looks for what
// it left behind.
func TestNode(t *testing.T) {
	var n *Node
	t.Run("pods", func(t *testing.T) {
		n = StartNode(t)
		n.checkPods(t)
	})
	if n == nil {
		t.Skip("no node was started")
	}
	if _, err := net.InterfaceByName(n.linkName()); err == nil {
		t.Errorf("the link %s was left behind", n.linkName())
	}
	if left := n.cgroups(); len(left) > 0 {
		t.Errorf("cgroups were left behind: %v", left)
	}
	if left := users(t, n.dir); len(left) > 0 {
		t.Errorf("processes were left behind: %v", left)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), n.dir) {
		t.Errorf("mounts of %s were left behind (%v):\n%s", n.dir, err, mounts)
	}
	if _, err := os.Stat(n.dir); !os.IsNotExist(err) {
		t.Errorf("the directory %s was left behind: %v", n.dir, err)
	}
}

func (n *Node) checkPods(t *testing.T) {
	t.Helper()
	remote := n.Registry() + "/team/web:1"
	n.PushPod(remote)
	n.Create("v1", "Pod", pod("web", PodImage, "serve", ":8080"))
	n.Create("v1", "Pod", pod("pulled", remote, "serve", ":8080"))
	n.Create("v1", "Pod", pod("crash", PodImage, "exit", "7"))
	for _, name := range []string{"web", "pulled"} {
		n.Until("pod "+name+" is ready", func() bool { return Ready(n.pod(name)) })
		if got, err := n.Ask(n.pod(name), "/hello"); got != name+"\n" || err != nil {
			t.Errorf("pod %s answers %q, %v; want its name", name, got, err)
		}
		status, log, err := n.Get("/api/v1/namespaces/" + namespace + "/pods/" + name + "/log")
		if want := "listening at :8080\nGET /hello\n"; log != want || status != http.StatusOK || err != nil {
			t.Errorf("log of pod %s: %d, %q, %v; want %q", name, status, log, err, want)
		}
	}
	n.Until("pod crash fails", func() bool { return n.pod("crash").Text("status", "phase") == "Failed" })
	if got := n.pod("crash").Items("status", "containerStatuses")[0].Number("state", "terminated", "exitCode"); got != 7 {
		t.Errorf("pod crash exited with %d; want 7", got)
	}
}

// pod is one that fits the Pod Security Standard "restricted".
func pod(name, image string, args ...any) kube.Object {
	return kube.Object{"metadata": doc{"name": name}, "spec": doc{
		"restartPolicy": "Never", "automountServiceAccountToken": false,
		"securityContext": doc{"runAsNonRoot": true, "runAsUser": 2000, "seccompProfile": doc{"type": "RuntimeDefault"}},
		"containers": []any{doc{"name": "app", "image": image, "args": args, "resources": doc{"limits": doc{"memory": "64Mi", "cpu": "100m"}},
			"securityContext": doc{"allowPrivilegeEscalation": false, "capabilities": doc{"drop": []any{"ALL"}}}}},
	}}
}

func (n *Node) pod(name string) kube.Object {
	all := n.List("v1", "Pod")
	if i := slices.IndexFunc(all, func(o kube.Object) bool { return o.Name() == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// users are the command lines of processes that name a directory.
func users(t *testing.T, dir string) (all []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), dir) {
			all = append(all, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return all
}
