package command

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzTable has a table of any cells lose none of their text, and fit the
// terminal but for names.
func FuzzTable(f *testing.F) {
	f.Add(80, "a/long/reference@sha256:0123456789abcdef", "12 MB", "what it is, in many words")
	f.Add(0, "a", "b", "c")
	f.Add(1, "a\tb\x1b[1m", "é", strings.Repeat("x", 200))
	f.Fuzz(func(t *testing.T, width int, a, b, c string) {
		if width < 0 || width > 1000 || !utf8.ValidString(a+b+c) || len(b) > 100 {
			return
		}
		tb := Table{Width: width}
		tb.Add("NAME", "MIDDLE", "LAST")
		tb.Add(a, b, c)
		var out bytes.Buffer
		if err := tb.Write(&out); err != nil {
			t.Fatal(err)
		}
		text := func(s string) string { return strings.Join(strings.Fields(strings.Map(Printed, s)), "") }
		if want, got := text("NAME MIDDLE LAST"+a+b+c), strings.Join(strings.Fields(out.String()), ""); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
		middle := max(utf8.RuneCountInString(b), len("MIDDLE"))
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); width >= len("NAME")+middle+2*len(tableGap)+leastLast && n > width && line != strings.Map(Printed, a) {
				t.Errorf("%q has %d of %d columns", line, n, width)
			}
		}
	})
}

func TestTableOfOneColumn(t *testing.T) {
	for width, want := range map[int]string{0: "NAME\none two three\n", 9: "NAME\none two\nthree\n"} {
		table, out := Table{Width: width}, strings.Builder{}
		table.Add("NAME")
		table.Add("one two three")
		if err := table.Write(&out); err != nil || out.String() != want {
			t.Errorf("width %d: got %q, %v; want %q", width, out.String(), err, want)
		}
	}
}
