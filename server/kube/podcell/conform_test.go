package podcell_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"cupola/runtime/cell/conformance"
	"cupola/runtime/lrp"
	"cupola/server/cells"
	"cupola/server/kube/kubetest"
	"cupola/server/kube/podcell"
)

// differs are what no pod does as a container of this machine; docs/kubernetes.md has them.
var differs = map[string]string{
	"files in place": "the kubelet looks at Secrets every minute or so; and the files of all bindings have one link ..data",
	"disk":           "the kubelet looks at what a pod has written now and then, and evicts it; writes do not fail",
	"stop signals":   "the kubelet sends SIGTERM, and SIGKILL after the time of grace",
}

// TestConformance runs the tests of all cells on one whose containers are pods of a node.
func TestConformance(t *testing.T) {
	n := kubetest.StartNode(t)
	account := n.Account()
	program, image := filepath.Join(t.TempDir(), "app"), n.Registry()+"/team/app:1"
	conformance.Build(t, program)
	n.PushProgram(image, program, conformance.Program)
	said := &conformance.Recorder{}
	cell, err := podcell.Open(cells.Cluster{Name: "edge", Kubeconfig: account}, podcell.Config{Owner: "conformance", Dir: t.TempDir(), Logs: said.Log, Events: said.Event})
	if err != nil {
		t.Fatal(err)
	}
	cell.SetReach(lrp.Reach{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cell.Run(ctx) }()
	conformance.Eventually(t, "the cluster is reached", func() bool { return !cell.Presence().Unreachable })
	conformance.Run(t, conformance.Subject{Cell: cell, Recorder: said, Differs: differs, Instance: func(guid string, args ...string) lrp.Container {
		return lrp.Container{GUID: guid, Kind: lrp.KindInstance, ProcessGUID: "p", Index: 1, RunInfo: lrp.RunInfo{
			RootFS: "docker://" + image, Action: lrp.Run{Path: conformance.Program, Args: args}.Action(),
			MemoryMB: 64, DiskMB: 64, CPUWeight: 1, LogRateLimitByte: -1, Ports: []uint16{8080}, Log: lrp.LogTarget{GUID: "app", Source: "APP/PROC/WEB", Instance: "1"},
		}}
	}})
	for _, c := range cell.Containers() {
		cell.Stop(c.GUID)
	}
	n.Until("nothing is left of the containers", func() bool {
		return len(n.List("v1", "Pod"))+len(n.List("v1", "Secret"))+len(n.List("networking.k8s.io/v1", "NetworkPolicy")) == 0
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	// cf ssh needs these alone, which TestAppOnKubernetesCellFromSource enters an instance by.
	if unused := n.Unused(); !slices.Equal(unused, []string{"create pods/exec", "get pods/exec"}) {
		t.Errorf("the account has rights that the cell does not use: %v", unused)
	}
}
