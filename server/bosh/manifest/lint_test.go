package manifest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh/ops"
	"cupola/server/bosh/tree"
)

var rewrite = flag.Bool("update", false, "write the golden files")

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func format(found Findings) string {
	var b bytes.Buffer
	for _, f := range found {
		fmt.Fprintf(&b, "%-7s %s\n", f.Level, f)
	}
	return b.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(read(t, path)), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestLintTellsEachFaultOfTheSeed(t *testing.T) {
	_, found := check(read(t, "testdata/seed.yml"), Options{Lenient: true})
	golden(t, "testdata/seed.lint", format(found))
}

// TestTheSeedCorrected checks that the seed's example has no error once its
// faults are fixed, and that what it sets in vain is reported.
func TestTheSeedCorrected(t *testing.T) {
	root, err := tree.Load(read(t, "testdata/seed.yml"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ops.Parse(read(t, "testdata/seed-corrected.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if root, err = ops.Apply(root, all); err != nil {
		t.Fatal(err)
	}
	m, found := Decode(root)
	found = append(found, Lint(m, Options{Given: []string{}})...)
	found.Sort()
	golden(t, "testdata/seed-corrected.lint", format(found))
}
