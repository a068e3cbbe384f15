package access

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestKustomization has each file, so that kubectl makes what the tests of cells do, whose API server checks each field.
func TestKustomization(t *testing.T) {
	text, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k struct {
		Namespace string
		Resources []string
	}
	if err := yaml.Unmarshal(text, &k); err != nil || k.Namespace != Namespace {
		t.Errorf("got %+v, %v", k, err)
	}
	want, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(name string) bool { return name == "kustomization.yaml" })
	slices.Sort(k.Resources)
	if !slices.Equal(k.Resources, want) {
		t.Errorf("it has %v; want %v", k.Resources, want)
	}
	all, err := Objects()
	if err != nil || len(all) != 6 {
		t.Errorf("got %d objects, %v; want 6", len(all), err)
	}
	for _, o := range all {
		if ns := o.Namespace(); ns != "" && ns != Namespace {
			t.Errorf("%s %s is in %s, which a kustomization of another namespace would leave there", o.Kind(), o.Name(), ns)
		}
	}
}
