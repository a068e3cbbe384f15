package kubetest

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"cupola/runtime/authority"
	"cupola/runtime/fault"
	"cupola/server/kube"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// nodePods is how many pods a node of a fleet takes, as a kubelet does by default.
const nodePods = 110

// Fleet is a control plane with many nodes that only pretend to run pods: a pod that is scheduled runs and is ready at once, has an
// address, and writes nothing; one that is to end is gone at once. Nothing polls: the pods are watched, by all nodes together.
type Fleet struct {
	*Node

	nodes  int
	client dynamic.Interface // without a limit
	work   chan kube.Object

	mu      sync.Mutex
	running map[string]string // node by pod
	made    int
}

// StartFleet starts a control plane and nodes for as many pods. It skips the test as StartNode does.
func StartFleet(t testing.TB, pods int) *Fleet {
	t.Helper()
	n := newNode(t)
	f := &Fleet{Node: n, nodes: (pods + nodePods - 1) / nodePods, work: make(chan kube.Object, 10*pods), running: map[string]string{}}
	n.control(n.Host(), n.services())
	n.open()
	n.furnish()
	config, err := clientcmd.BuildConfigFromFlags("", n.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	if f.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(n.dir, "registries"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.serve()
	for range 16 {
		go f.kubelet()
	}
	go f.watch()
	go f.renew()
	n.Until("the nodes are ready", func() bool { return len(n.List("v1", "ServiceAccount")) > 0 && len(n.List("v1", "Node")) == f.nodes })
	return f
}

// serve is all nodes' kubelets, as the API server sees them: logs go on without a line, and pods use something.
func (f *Fleet) serve() {
	f.t.Helper()
	ca, err := authority.Open(authority.Config{CertFile: f.dir + "/ca.pem", KeyFile: f.dir + "/ca.key", Name: "kubetest"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.issue(ca, "kubelet", x509.Certificate{IPAddresses: []net.IP{net.ParseIP(f.Host())}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	for number := range f.nodes {
		l, err := (&net.ListenConfig{}).Listen(f.t.Context(), "tcp", f.Host()+":0")
		if err != nil {
			f.t.Fatal(err)
		}
		name := fmt.Sprintf("node-%d", number)
		server := &http.Server{ReadHeaderTimeout: Patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.answer(w, r, name) })}
		go func() {
			_ = server.ServeTLS(l, filepath.Join(f.dir, "kubelet.pem"), filepath.Join(f.dir, "kubelet.key"))
		}()
		f.t.Cleanup(func() { _ = server.Close() })
		room := doc{"cpu": "64", "memory": "256Gi", "pods": strconv.Itoa(nodePods), "ephemeral-storage": "1Ti"}
		f.Create("v1", "Node", doc{"metadata": doc{"name": name, "labels": doc{kube.DefaultZoneLabel: "z1"}}, "status": doc{
			"allocatable": room, "capacity": room, "addresses": []any{doc{"type": "InternalIP", "address": f.Host()}},
			"daemonEndpoints": doc{"kubeletEndpoint": doc{"Port": l.Addr().(*net.TCPAddr).Port}},
			"conditions":      []any{doc{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now(), "lastTransitionTime": now()}},
		}})
	}
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

func (f *Fleet) answer(w http.ResponseWriter, r *http.Request, node string) {
	if !strings.HasPrefix(r.URL.Path, "/stats/summary") { // a log
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-f.t.Context().Done():
		}
		return
	}
	pods := []any{}
	f.mu.Lock()
	for pod, on := range f.running {
		if on == node {
			pods = append(pods, doc{"podRef": doc{"name": pod}, "cpu": doc{"usageNanoCores": 1000000}, "memory": doc{"workingSetBytes": 8 << 20}})
		}
	}
	f.mu.Unlock()
	_ = json.NewEncoder(w).Encode(doc{"pods": pods})
}

// renew reports that the nodes live, many at once: a busy API server takes its time for each, and a node that is late is lost.
func (f *Fleet) renew() {
	leases := f.client.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace("kube-node-lease")
	for f.t.Context().Err() == nil {
		var group fault.Group
		group.SetLimit(16)
		for number := range f.nodes {
			group.Go(fault.ErrFunc("renew", func() error {
				name, force := fmt.Sprintf("node-%d", number), true
				lease := doc{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": doc{"name": name}, "spec": doc{"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")}}
				text, _ := json.Marshal(lease) // plain data
				_, _ = leases.Patch(f.t.Context(), name, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: "fleet", Force: &force})
				return nil
			}))
		}
		_ = group.Wait()
		f.pause(10 * time.Second)
	}
}

// pause waits for some time, but not beyond the test.
func (f *Fleet) pause(d time.Duration) {
	select {
	case <-f.t.Context().Done():
	case <-time.After(d):
	}
}

// watch follows the pods of all namespaces from the first one on.
func (f *Fleet) watch() {
	version := "0"
	for f.t.Context().Err() == nil {
		w, err := f.client.Resource(podResource).Watch(f.t.Context(), metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			f.pause(time.Second)
			continue
		}
		for e := range w.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type == watch.Error {
				break
			}
			version = u.GetResourceVersion()
			if e.Type == watch.Added || e.Type == watch.Modified {
				f.work <- u.Object
			}
		}
		w.Stop()
	}
}

// kubelet brings pods on.
func (f *Fleet) kubelet() {
	for {
		select {
		case <-f.t.Context().Done():
			return
		case pod := <-f.work:
			f.step(pod)
		}
	}
}

func (f *Fleet) step(pod kube.Object) {
	pods := f.client.Resource(podResource).Namespace(pod.Namespace())
	f.mu.Lock()
	_, runs := f.running[pod.Name()]
	f.mu.Unlock()
	switch {
	case !kube.Deleted(pod).IsZero():
		none := int64(0)
		_ = pods.Delete(f.t.Context(), pod.Name(), metav1.DeleteOptions{GracePeriodSeconds: &none})
		f.mu.Lock()
		delete(f.running, pod.Name())
		f.mu.Unlock()
	case pod.Text("spec", "nodeName") != "" && !runs:
		f.mu.Lock()
		f.running[pod.Name()] = pod.Text("spec", "nodeName")
		f.made++
		ip := fmt.Sprintf("10.64.%d.%d", f.made/250%250, f.made%250+1)
		f.mu.Unlock()
		text, _ := json.Marshal(doc{"status": f.status(pod, ip)}) // plain data
		_, _ = pods.Patch(f.t.Context(), pod.Name(), types.MergePatchType, text, metav1.PatchOptions{}, "status")
	}
}

// status is that of a pod that runs and is ready.
func (f *Fleet) status(pod kube.Object, ip string) doc {
	at, conditions, containers := now(), []any{}, []any{}
	for _, kind := range []string{"PodScheduled", "Initialized", "ContainersReady", "Ready"} {
		conditions = append(conditions, doc{"type": kind, "status": "True", "lastTransitionTime": at})
	}
	for _, c := range pod.Items("spec", "containers") {
		containers = append(containers, doc{"name": c.Text("name"), "image": c.Text("image"), "imageID": "", "ready": true, "started": true, "restartCount": 0, "state": doc{"running": doc{"startedAt": at}}})
	}
	return doc{"phase": "Running", "startTime": at, "hostIP": f.Host(), "podIP": ip, "podIPs": []any{doc{"ip": ip}}, "conditions": conditions, "containerStatuses": containers}
}

// Pods is how many pods run.
func (f *Fleet) Pods() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.running)
}

// PID is that of a part of the control plane.
func (p *Plane) PID(name string) int {
	for _, part := range p.parts {
		if part.name == name {
			return part.process.Pid
		}
	}
	return 0
}
