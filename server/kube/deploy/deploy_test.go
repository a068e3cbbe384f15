package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"cupola/server/kube/access"
)

// TestKustomization has each file, so that kubectl makes what the test on a node does, whose API server checks each field.
func TestKustomization(t *testing.T) {
	text, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	want, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want = append(slices.DeleteFunc(want, func(name string) bool { return name == "kustomization.yaml" }), "../access")
	slices.Sort(want)
	slices.Sort(k.Resources)
	if !slices.Equal(k.Resources, want) {
		t.Errorf("it has %v; want %v", k.Resources, want)
	}
	all, err := Objects()
	if err != nil || len(all) != 14 {
		t.Errorf("got %d objects, %v; want 14", len(all), err)
	}
	for _, o := range all {
		if ns := o.Namespace(); ns != "" && ns != Namespace && ns != access.Namespace {
			t.Errorf("%s %s is in %s", o.Kind(), o.Name(), ns)
		}
	}
}
