package linediff

import (
	"fmt"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	var long []string
	for n := range 30 {
		long = append(long, fmt.Sprint("line ", n))
	}
	text := strings.Join(long, "\n") + "\n"
	for _, c := range []struct{ name, was, is, want string }{
		{"the same", text, text, ""},
		{"new", "", "a\nb\n", "+ a|+ b"},
		{"gone", "a\n", "", "- a"},
		{"in the middle", "a\nb\nc\n", "a\nB\nc\n", "  a|- b|+ B|  c"},
		{"no newline at the end", "a\nb", "a\nc", "  a|- b|+ c"},
		{"far apart", text, strings.NewReplacer("line 0\n", "", "line 20\n", "line twenty\n").Replace(text),
			"- line 0|  line 1|  line 2|  line 3|  …|  line 17|  line 18|  line 19|- line 20|+ line twenty|  line 21|  line 22|  line 23"},
	} {
		if got := strings.Join(Lines(c.was, c.is), "|"); got != c.want {
			t.Errorf("%s: got %q; want %q", c.name, got, c.want)
		}
	}
}

// TestDiffLinesLong compares manifests as large as any: what it takes must not
// grow with the square of their lines.
func TestLinesLong(t *testing.T) {
	const n = 100_000
	var was, is strings.Builder
	for i := range n {
		fmt.Fprintf(&was, "- %d\n", i)
		fmt.Fprintf(&is, "- %d\n", n-i)
	}
	if got := Lines(was.String(), is.String()); len(got) < n {
		t.Errorf("got %d lines; want one for each change", len(got))
	}
}
