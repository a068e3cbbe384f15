package cells

import (
	"reflect"
	"strings"
	"testing"

	"cupola/runtime/lrp"
)

func TestParseCluster(t *testing.T) {
	for text, want := range map[string]Cluster{
		"edge=/etc/kube": {Name: "edge", Kubeconfig: "/etc/kube", Zone: DefaultZone},
		"edge=/etc/a=b,namespace=cf,zone=z2,context=x": {Name: "edge", Kubeconfig: "/etc/a=b", Namespace: "cf", Zone: "z2", Context: "x"},
		"edge=in-cluster,namespace=cf":                 {Name: "edge", Kubeconfig: InCluster, Namespace: "cf", Zone: DefaultZone},
		"edge=/etc/kube,tunnel=always":                 {Name: "edge", Kubeconfig: "/etc/kube", Zone: DefaultZone, Tunnel: TunnelAlways},
		"edge=/etc/kube,tag=Prod":                      {Name: "edge", Kubeconfig: "/etc/kube", Zone: DefaultZone, Tag: "Prod"},
	} {
		if got, err := parseCluster(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "edge", "edge=", "=/etc/kube", "-x=/k", "x-=/k", "a b=/k", "edge=/k,", "edge=/k,contxt=x", "edge=/k,context=", "edge=/k,context=a,context=b", "edge=/k,zone=a b", "edge=in-cluster,context=x", "edge=/k,tunnel=yes", "edge=/k,tag=a b"} {
		if c, err := parseCluster(text); err == nil || !strings.HasPrefix(err.Error(), "invalid --kubernetes ") {
			t.Errorf("%q: got %+v, %v; want an error that names the flag", text, c, err)
		}
	}
}

func FuzzParseCluster(f *testing.F) {
	f.Add("edge=/etc/kube,context=a,namespace=b,zone=c")
	f.Add("=,=")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCluster(text)
		if err == nil && (c.Name == "" || c.Kubeconfig == "" || c.Zone == "") {
			t.Errorf("%q: got %+v without an error", text, c)
		}
	})
}

// Nothing gets to a cluster that does not ask for it.
func TestClusterTakesOnlyWhatRequiresIt(t *testing.T) {
	c := Cluster{Name: "Edge"}.Presence()
	if c.Suits(lrp.Constraint{}) || c.Suits(lrp.Constraint{Require: []string{"other"}}) || !c.Suits(lrp.Constraint{Require: []string{"edge"}}) {
		t.Errorf("%+v suits what does not require it, or not what does", c)
	}
}

// Clusters with one tag take what requires it, and a pool can lead to one of them.
func TestClustersShareATag(t *testing.T) {
	east, west := Cluster{Name: "east", Tag: "Prod"}.Presence(), Cluster{Name: "west", Tag: "prod"}.Presence()
	for _, c := range []struct {
		require    []string
		east, west bool
	}{{nil, false, false}, {[]string{"prod"}, true, true}, {[]string{"east"}, false, false}, {[]string{"east", "prod"}, true, false}} {
		of := lrp.Constraint{Require: c.require}
		if east.Suits(of) != c.east || west.Suits(of) != c.west {
			t.Errorf("%v: it suits east %t, west %t; want %t, %t", c.require, east.Suits(of), west.Suits(of), c.east, c.west)
		}
	}
	if same := (Cluster{Name: "east", Tag: "EAST"}).Presence(); len(same.Tags) != 1 {
		t.Errorf("got the tags %v", same.Tags)
	}
}

func TestRegistryAddress(t *testing.T) {
	for address, want := range map[string]bool{
		"": true, "192.0.2.1:5443": true, "registry.example.com:5443": true, "[2001:db8::1]:5443": true,
		":5443": false, "0.0.0.0:5443": false, "[::]:5443": false, "192.0.2.1": false, "192.0.2.1:0": false, "192.0.2.1:https": false, "192.0.2.1:70000": false,
	} {
		c := Config{Kubernetes: []string{"edge=/k"}, KubernetesRegistry: address}
		if err := c.Normalize(); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "invalid --kubernetes-registry ") {
			t.Errorf("%q: got %v", address, err)
		}
	}
	for listen, want := range map[string]bool{"": true, ":5443": true, "0.0.0.0:5443": true, "[::1]:5443": true, "localhost:5443": true, "5443": false, "0.0.0.0": false, "0.0.0.0:0": false, "0.0.0.0:70000": false} {
		c := Config{Kubernetes: []string{"edge=/k"}, KubernetesRegistry: "192.0.2.1:5443", RegistryListen: listen}
		if err := c.Normalize(); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "invalid --kubernetes-registry-listen ") {
			t.Errorf("listen at %q: got %v", listen, err)
		}
	}
	c := Config{Kubernetes: []string{"edge=/k"}, RegistryListen: ":5443"}
	if err := c.Normalize(); err == nil || !strings.Contains(err.Error(), "give --kubernetes-registry, too") {
		t.Errorf("got %v for an address without the one that nodes reach", err)
	}
	c = Config{KubernetesRegistry: "192.0.2.1:5443"}
	if err := c.Normalize(); err == nil || !strings.Contains(err.Error(), "give --kubernetes, too") {
		t.Errorf("got %v without a cluster", err)
	}
}

func TestClustersHaveTheirOwnNames(t *testing.T) {
	for _, c := range []Config{
		{Kubernetes: []string{"cupola=/k"}},
		{Kubernetes: []string{"a=/k", "A=/k"}},
		{Kubernetes: []string{"b=/k"}, Cells: List{{Name: "B"}}},
	} {
		if err := c.Normalize(); err == nil || !strings.Contains(err.Error(), "another cell is named") {
			t.Errorf("%v: got %v", c.Kubernetes, err)
		}
	}
	c := Config{Kubernetes: []string{"a=/k", "cupola=/k"}, Cells: List{{Name: "b"}}}
	if err := c.Normalize(); err != nil {
		t.Error(err)
	}
	var names []string
	for _, cluster := range c.Clusters {
		names = append(names, cluster.Name)
	}
	if want := []string{"a", "cupola"}; !reflect.DeepEqual(names, want) {
		t.Errorf("got %v; want %v", names, want)
	}
}

// TestNoCells leaves everything to the clusters, of which there has to be one.
func TestNoCells(t *testing.T) {
	c := Config{Cells: NoCells(), Kubernetes: []string{"cupola=/k"}}
	for range 2 { // which Validate may do, too
		if err := c.Normalize(); err != nil || !c.None || len(c.Cells) > 0 {
			t.Fatalf("got %+v, %v", c, err)
		}
	}
	if p := c.Clusters[0].Presence(); !p.Suits(lrp.Constraint{}) || !p.Suits(lrp.Constraint{Require: []string{"cupola"}}) || p.Suits(lrp.Constraint{Require: []string{"other"}}) {
		t.Errorf("%+v does not take all that it has the tags for", p)
	}
	m := Machine{Config: c}
	if parts := m.Parts(); parts == nil || len(parts) > 0 || len(m.Groups(nil)) > 0 {
		t.Errorf("got the parts %v", parts)
	}
	c = Config{Cells: NoCells()}
	if err := c.Normalize(); err == nil || !strings.Contains(err.Error(), "invalid --cells none: give --kubernetes, too") {
		t.Errorf("got %v without a cluster", err)
	}
}
