package images

import (
	"archive/tar"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// TestAppOnKubernetesCell runs a docker app on a cell that is a cluster: it answers, scales,
// logs; it goes on without the daemon, whose successor has the same pods; a
// pod that the cluster takes away has a successor; one that
// exits crashes as on other cells; and nothing is left of apps that were deleted.
func TestAppOnKubernetesCell(t *testing.T) {
	t.Parallel()
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	account := n.Account()
	registry := n.Registry()
	n.PushPod(registry+"/team/web:1", "serve", ":8080")
	d := e2e.StartDaemon(t, binary, "--plain-http", registry, "--kubernetes", "edge="+account)
	placeOn(d, "edge")
	d.Flag("diego_docker", true)
	if fault := d.PushDocker(t, "shop", registry+"/team/web:1", ""); fault != "" {
		t.Fatal(fault)
	}
	d.MapRoute(t, "shop")
	only := d.Running("shop", "web", 1)[0]
	d.Answers("shop", only.InstanceGUID) // the name of its host
	d.Logged("shop", "listening at :8080")
	if got := podNames(n); !slices.Equal(got, []string{only.InstanceGUID}) {
		t.Fatalf("the cluster has the pods %v; want %s", got, only.InstanceGUID)
	}
	checkUsage(t, d)
	checkTask(t, d)
	checkPolicies(t, d, n)
	entersDocker(t, d, n, registry)

	d.ScaleTo("shop", 3)
	was := e2e.GUIDs(d.Running("shop", "web", 3))
	d.Kill()
	for _, pod := range n.List("v1", "Pod") {
		if body, err := n.Ask(pod, "/"); err != nil || strings.TrimSpace(body) != pod.Name() {
			t.Errorf("pod %s answers %q, %v without a daemon", pod.Name(), body, err)
		}
	}
	d.Start()
	if is := e2e.GUIDs(d.Running("shop", "web", 3)); !slices.Equal(is, was) {
		t.Errorf("the next daemon has the instances %v; want %v", is, was)
	}
	for _, guid := range was {
		d.Answers("shop", guid)
	}

	d.ScaleTo("shop", 1)
	n.Until("the pods of instances that were stopped are gone", func() bool { return len(n.List("v1", "Pod")) == 1 })
	checkKills(t, d, n)
	checkOutage(t, d, n, registry+"/team/web:1")
	taken := d.Running("shop", "web", 1)[0].InstanceGUID
	n.Delete("v1", "Pod")
	n.Until("the pod has a successor", func() bool {
		list := d.Stats("shop", "web")
		return len(list) == 1 && list[0].State == "RUNNING" && list[0].InstanceGUID != taken
	})
	d.Answers("shop", d.Stats("shop", "web")[0].InstanceGUID)

	n.PushPod(registry+"/team/crash:1", "exit", "7")
	checkCrash(t, d, registry+"/team/crash:1")

	checkLeaving(d, n)
	n.Until("nothing is left of the apps", func() bool { return len(n.List("v1", "Pod"))+len(n.List("v1", "Secret")) == 0 })
	n.Until("no policy is left", func() bool { return len(policiesOf(n)) == 0 })
}

// checkLeaving starts the daemon without the cluster: what runs there is known, and moves to this machine; then the cluster is forgotten.
func checkLeaving(d *e2e.Daemon, n *kubetest.Node) {
	d.T.Helper()
	was := d.Running("shop", "web", 1)[0].InstanceGUID
	d.Kill()
	d.Flags = d.Flags[:2]
	d.Start()
	lists := func(want bool) {
		e2e.Eventually(d.T, kubetest.Patience, func() string {
			out, err := d.Run("cells")
			if err == nil && strings.Contains(out, "edge (leaving)") == want {
				return ""
			}
			return out
		})
	}
	lists(true)
	if is := d.Running("shop", "web", 1)[0].InstanceGUID; is != was {
		d.T.Errorf("the instance on the cluster that leaves is %s; want %s", is, was)
	}
	d.Answers("shop", was)
	if out, err := d.Run("cells", "move", "cupola", "dev", "--to", "cupola"); err != nil {
		d.T.Fatalf("%v\n%s", err, out)
	}
	lists(false)
	n.Until("nothing is left on the cluster", func() bool { return len(n.List("v1", "Pod"))+len(policiesOf(n)) == 0 })
	e2e.Eventually(d.T, kubetest.Patience, func() string {
		if strings.Contains(d.Log.String(), "nothing runs any longer on the cluster") {
			return ""
		}
		return "the cluster is not forgotten"
	})
	d.Deleted("shop")
}

// placeOn makes the apps of the space run on the cell.
func placeOn(d *e2e.Daemon, cell string) {
	d.T.Helper()
	for _, args := range [][]string{{"create", cell, "--require", cell}, {"assign", cell, "cupola", "dev"}} {
		if out, err := d.Run(append([]string{"placement-pools"}, args...)...); err != nil {
			d.T.Fatalf("%v\n%s", err, out)
		}
	}
}

// checkUsage waits until the stats have what the node measured.
func checkUsage(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	e2e.Eventually(t, kubetest.Patience, func() string {
		var stats struct {
			Resources []struct {
				MemQuota uint64 `json:"mem_quota"`
				Usage    struct{ Mem uint64 }
			}
		}
		d.API("GET", "/v3/apps/"+d.App("shop")+"/processes/web/stats", nil, &stats)
		if len(stats.Resources) == 1 && stats.Resources[0].Usage.Mem > 0 && stats.Resources[0].MemQuota > stats.Resources[0].Usage.Mem {
			return ""
		}
		return fmt.Sprintf("the stats are %+v", stats.Resources)
	})
}

// checkTask runs a task, for which the image has no shell.
func checkTask(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	var task struct {
		GUID, State string
		Result      struct {
			Reason string `json:"failure_reason"`
		}
	}
	d.API("POST", "/v3/apps/"+d.App("shop")+"/tasks", e2e.Doc{"name": "migrate", "command": "migrate"}, &task)
	e2e.Eventually(t, kubetest.Patience, func() string {
		d.API("GET", "/v3/tasks/"+task.GUID, nil, &task)
		if task.State == "FAILED" && strings.Contains(task.Result.Reason, "/bin/sh") {
			return ""
		}
		return fmt.Sprintf("the task is %+v", task)
	})
}

// entersDocker has shells in an instance of a docker app, into which the first one brings the SSH server; an image without a shell says so.
func entersDocker(t *testing.T, d *e2e.Daemon, n *kubetest.Node, registry string) {
	t.Helper()
	tools, err := os.ReadFile(filepath.Join(e2e.Repository(t), "runtime/lifecycle/bin/lifecycle"))
	if err != nil {
		t.Fatal(err)
	}
	entries := []e2e.TarEntry{{Header: tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}}, {Header: tar.Header{Name: "bin/tools", Mode: 0o755}, Content: tools}}
	for _, name := range []string{"sh", "head", "wc", "mkdir", "chmod", "mv", "ln", "cat", "id", "sleep"} {
		entries = append(entries, e2e.TarEntry{Header: tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "tools"}})
	}
	n.PushLayer(registry+"/team/tools:1", e2e.LayerOf(t, entries...), v1.Config{Cmd: []string{"/bin/sh", "-c", "while true; do sleep 1000; done"}, Env: []string{"OF=the image"}})
	if fault := d.PushDocker(t, "probe", registry+"/team/web:1", ""); fault != "" {
		t.Fatal(fault)
	}
	d.Running("probe", "web", 1)
	if _, err := d.Enter(0).NewSession(); err == nil || !strings.Contains(err.Error(), "the image has no shell /bin/sh") {
		t.Errorf("an image without a shell: got %v", err)
	}
	d.API("PATCH", "/v3/processes/"+d.Process("probe"), e2e.Doc{"health_check": e2e.Doc{"type": "process"}}, nil)
	if fault := d.PushDocker(t, "probe", registry+"/team/tools:1", ""); fault != "" {
		t.Fatal(fault)
	}
	d.Running("probe", "web", 1)
	for range 2 {
		if out, err := d.NewSession(d.Enter(0)).Output("echo $(id -u) $INSTANCE_INDEX $OF"); err != nil || string(out) != "2000 0 the image\n" {
			t.Errorf("got %q, %v", out, err)
		}
	}
	d.Deleted("probe")
}

// checkPolicies waits until security groups and network policies are what the cluster has. Its
// network plugin does not enforce them.
func checkPolicies(t *testing.T, d *e2e.Daemon, n *kubetest.Node) {
	t.Helper()
	app := d.App("shop")
	d.API("POST", "/v3/security_groups", e2e.Doc{"name": "billing", "globally_enabled": e2e.Doc{"running": true},
		"rules": []e2e.Doc{{"protocol": "tcp", "destination": "192.0.2.7-192.0.2.8", "ports": "9000-9010"}, {"protocol": "icmp", "destination": "192.0.2.9", "type": 8, "code": 0}}}, nil)
	d.API("POST", "/networking/v1/external/policies", e2e.Doc{"policies": []e2e.Doc{{"source": e2e.Doc{"id": app},
		"destination": e2e.Doc{"id": app, "protocol": "tcp", "ports": e2e.Doc{"start": 8080, "end": 8090}}}}}, nil)
	e2e.Eventually(t, kubetest.Patience, func() string {
		all := policiesOf(n)
		text := fmt.Sprint(all)
		if len(all) == 3 && strings.Contains(text, "cidr:192.0.2.7/32") && strings.Contains(text, "endPort:9010") && !strings.Contains(text, "192.0.2.9") &&
			strings.Contains(text, "endPort:8090 port:8080") && strings.Contains(text, "cidr:"+n.Host()+"/32") {
			return ""
		}
		return fmt.Sprintf("the policies are %v", text)
	})
}

// policiesOf are the specs of all policies that the cluster has.
func policiesOf(n *kubetest.Node) (all []map[string]any) {
	for _, o := range n.List("networking.k8s.io/v1", "NetworkPolicy") {
		all = append(all, o.Map("spec"))
	}
	return all
}

// checkCrash runs an app whose process exits, until it is not started at once any longer.
func checkCrash(t *testing.T, d *e2e.Daemon, image string) {
	t.Helper()
	if fault := d.PushDocker(t, "crash", image, ""); fault != "" {
		t.Fatal(fault)
	}
	e2e.Eventually(t, kubetest.Patience, func() string {
		if list := d.Stats("crash", "web"); len(list) != 1 || list[0].State != "CRASHED" {
			return fmt.Sprintf("the app that exits is %+v", list)
		}
		return ""
	})
	d.Logged("crash", "Exit status 7")
	var events struct {
		Resources []struct {
			Data struct {
				Exit string `json:"exit_description"`
				Cell string `json:"cell_id"`
			}
		}
	}
	d.API("GET", "/v3/audit_events?types=audit.app.process.crash", nil, &events)
	for _, e := range events.Resources {
		if e.Data.Exit != "APP/PROC/WEB: Exited with status 7" || e.Data.Cell != "edge" {
			t.Errorf("got the crash %+v", e)
		}
	}
	if len(events.Resources) != 3 {
		t.Errorf("got %d crashes; want 3, as Diego has them", len(events.Resources))
	}
	d.API("DELETE", "/v3/apps/"+d.App("crash"), nil, nil)
}

func podNames(n *kubetest.Node) (names []string) {
	for _, pod := range n.List("v1", "Pod") {
		names = append(names, pod.Name())
	}
	return names
}
