package images

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// TestAppOnKubernetesCellOfTwoNodes runs an app on a cell whose nodes are in two zones: its instances are divided between them, and what no
// node has room for says so.
func TestAppOnKubernetesCellOfTwoNodes(t *testing.T) {
	t.Parallel()
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	registry := n.Registry()
	n.PushPod(registry+"/team/web:1", "serve", ":8080")
	n.Join("z2").PullsPlain(registry)
	d := e2e.StartDaemon(t, binary, "--plain-http", registry, "--kubernetes", "edge="+n.Account()+",tag=prod")
	placeOn(d, "prod")
	d.Flag("diego_docker", true)
	if fault := d.PushDocker(t, "shop", registry+"/team/web:1", ""); fault != "" {
		t.Fatal(fault)
	}
	d.MapRoute(t, "shop")
	d.ScaleTo("shop", 4)
	running := e2e.GUIDs(d.Running("shop", "web", 4))
	on := map[string]int{}
	for _, pod := range n.List("v1", "Pod") {
		on[pod.Text("spec", "nodeName")]++
	}
	if want := map[string]int{"node-z1": 2, "node-z2": 2}; !maps.Equal(on, want) {
		t.Errorf("the instances are on %v; want %v", on, want)
	}
	for _, guid := range running {
		d.Answers("shop", guid) // the router reaches pods of both
	}
	tooLarge(t, d, n)
}

// tooLarge scales the app to more memory than a node has, and both together have: what it waits for is seen where users look.
func tooLarge(t *testing.T, d *e2e.Daemon, n *kubetest.Node) {
	t.Helper()
	node := n.List("v1", "Node")[0]
	var kilobytes int
	if _, err := fmt.Sscanf(node.Text("status", "allocatable", "memory"), "%dKi", &kilobytes); err != nil {
		t.Fatal(err)
	}
	d.ScaleTo("shop", 1)
	d.API("POST", "/v3/apps/"+d.App("shop")+"/processes/web/actions/scale", e2e.Doc{"memory_in_mb": kilobytes>>10 + 1}, nil)
	d.API("POST", "/v3/apps/"+d.App("shop")+"/actions/restart", nil, nil)
	e2e.Eventually(t, kubetest.Patience, func() string {
		var stats struct {
			Resources []struct{ State, Details string }
		}
		d.API("GET", "/v3/apps/"+d.App("shop")+"/processes/web/stats", nil, &stats)
		if len(stats.Resources) == 1 && stats.Resources[0].State == "STARTING" && stats.Resources[0].Details == "Waiting: Unschedulable: 0/2 nodes are available: 2 Insufficient memory" {
			return ""
		}
		return fmt.Sprintf("the stats are %+v", stats.Resources)
	})
	if out, err := d.Run("app", "why", "shop"); err != nil || !strings.Contains(out, "give the app less memory") {
		t.Errorf("why: %v\n%s", err, out)
	}
}
