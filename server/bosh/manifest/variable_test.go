package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cupola/server/bosh/ops"
	"cupola/server/bosh/tree"
	"cupola/server/bosh/variables"
)

func TestDeclared(t *testing.T) {
	m, found := Parse([]byte(`
features: {converge_variables: true}
variables:
- {name: p, type: password, options: {length: 20}}
- {name: c, type: certificate, update_mode: no-overwrite, options: {ca: ca, common_name: x, alternative_names: [a, 10.0.0.1]}}
`))
	if found != nil {
		t.Fatal(format(found))
	}
	want := []variables.Declared{
		{Name: "p", Type: variables.Password, Options: variables.Options{Length: 20}, Mode: variables.Converge},
		{Name: "c", Type: variables.Certificate, Options: variables.Options{CA: "ca", CommonName: "x", AlternativeNames: []string{"a", "10.0.0.1"}}, Mode: variables.NoOverwrite},
	}
	if diff := cmp.Diff(want, m.Declared()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLinesAreThoseOfTheManifest checks that findings in what an ops file put in have
// the line of what contains it.
func TestLinesAreThoseOfTheManifest(t *testing.T) {
	root, err := tree.Load([]byte("name: a\n\ninstance_groups:\n- name: b\n  instances: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ops.Parse([]byte("# a line\n- {type: replace, path: '/instance_groups/name=b/azs?', value: text}"))
	if err != nil {
		t.Fatal(err)
	}
	if root, err = ops.Apply(root, all); err != nil {
		t.Fatal(err)
	}
	_, found := Decode(root)
	want := Findings{
		{Level: Error, Path: "/instance_groups/name=b/azs", Line: 4, What: "expected a list, got text"},
		{Level: Error, Path: "/instance_groups/name=b/instances", Line: 5, What: `expected a number, got "x"`},
	}
	if diff := cmp.Diff(want, found, cmpopts.IgnoreUnexported(Finding{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
