package manifest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh/tree"
)

// TestKeysAreThoseThatAreRead holds the table of keys against what the decoder
// asks for.
func TestKeysAreThoseThatAreRead(t *testing.T) {
	root, err := tree.Load(read(t, "testdata/every-key.yml"))
	if err != nil {
		t.Fatal(err)
	}
	d := &decoder{asked: map[string]bool{}}
	d.manifest(root)
	if root, err = tree.Load(read(t, "testdata/every-cloud-key.yml")); err != nil {
		t.Fatal(err)
	}
	d.cloud(root)
	for _, f := range d.found {
		t.Errorf("the fixture: %s", f)
	}
	var table []string
	for _, k := range keys() {
		table = append(table, k.Path)
	}
	slices.Sort(table)
	if diff := cmp.Diff(table, slices.Sorted(maps.Keys(d.asked))); diff != "" {
		t.Errorf("(-table +read):\n%s", diff)
	}
}

// TestEveryKeyThatIsSetIsToldOf holds that each key that is warned of or
// refused is, and no other.
func TestEveryKeyThatIsSetIsToldOf(t *testing.T) {
	m, _ := Parse(read(t, "testdata/every-key.yml"))
	l := &linter{m: m}
	l.keys()
	found := map[string]bool{}
	for _, f := range l.found {
		found[f.Path] = true
	}
	want := map[string]bool{}
	for _, s := range m.set {
		want[s.Path] = true
	}
	delete(want, "/features/use_dns_addresses") // only false is refused
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !found["/properties"] || !found["/instance_groups/name=nats/env/bosh/job_dir/tmpfs"] {
		t.Errorf("got %v", found)
	}
}

func TestKeysSayWhatBecomesOfThem(t *testing.T) {
	for _, k := range keys() {
		if k.Use == refused && k.Text == "" {
			t.Errorf("%s is refused; its text has to say the mend", k.Path)
		}
		if strings.Contains(k.Text, "|") {
			t.Errorf("%s: the text is a cell of a table", k.Path)
		}
	}
}
