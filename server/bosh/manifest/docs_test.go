package manifest

import (
	"fmt"
	"strings"
	"testing"
)

// table is keys as docs/bosh.md shows them: what stands in two places is shown
// in one.
func table() string {
	var b strings.Builder
	b.WriteString("| key | | |\n|---|---|---|\n")
	for _, k := range keys() {
		if strings.HasPrefix(k.Path, "addons[].jobs[].") || strings.Contains(k.Path, ".liveness.") || strings.Contains(k.Path, "activePassiveProbes.*.") || strings.Contains(k.Path, ".handler.") {
			continue
		}
		text := k.Text
		if k.When != "" {
			text = "if " + k.When + ": " + text
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.NewReplacer("instance_groups[].jobs[].properties.quarks.", "quarks: ", cloudPath+".", "cloud-config: ").Replace(k.Path), k.Use, text)
	}
	return b.String()
}

// TestDocsShowEveryKey holds the table in docs/bosh.md against the one in the
// code; -update writes it.
func TestDocsShowEveryKey(t *testing.T) {
	const path, begin, end = "../../../docs/bosh.md", "<!-- keys -->\n", "<!-- end of keys -->\n"
	text := string(read(t, path))
	before, rest, ok1 := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the keys", path)
	}
	golden(t, path, before+begin+table()+end+after)
}
