package debian

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readAll collects clones of the paragraphs of text.
func readAll(text string) (all []paragraph, err error) {
	for p, err := range paragraphs(text) {
		if err != nil {
			return all, err
		}
		all = append(all, slices.Clone(p))
	}
	return all, nil
}

func TestParagraphs(t *testing.T) {
	text := "# comment\nPackage: a\nDescription: short\n long\n .\n\tmore\n# within\nEmpty:\n\n \n\r\npackage:b\r\nSHA256:\n x 1 y\n"
	want := []paragraph{
		{{"Package", "a"}, {"Description", "short\n long\n .\n\tmore"}, {"Empty", ""}},
		{{"package", "b"}, {"SHA256", "\n x 1 y"}},
	}
	got, err := readAll(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(field{})); diff != "" {
		t.Error(diff)
	}
	if got := got[1].get("PACKAGE"); got != "b" {
		t.Errorf("got %q; want b", got)
	}
	if got, want := want[1].String(), "package: b\nSHA256:\n x 1 y\n"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestParagraphsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		" folded\n":        "line 1: continuation line before any field",
		"A: b\n\n folded":  "line 3: continuation",
		"A: b\nno colon\n": "line 2: no field name",
		": value\n":        "no field name",
		"two words: x\n":   "no field name",
	} {
		if _, err := readAll(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v; want %q", text, err, want)
		}
	}
}

func FuzzParagraphs(f *testing.F) {
	f.Add("Package: a\nDepends: b,\n c\n\nPackage: d\n")
	f.Add("SHA256:\n abc 1 x\n")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := readAll(text)
		if err != nil {
			return
		}
		var b strings.Builder
		for _, p := range first {
			b.WriteString(p.String() + "\n")
		}
		second, err := readAll(b.String())
		if err != nil {
			t.Fatalf("%q, written as %q: %v", text, b.String(), err)
		}
		if diff := cmp.Diff(first, second, cmp.AllowUnexported(field{})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	})
}

func TestParseClauses(t *testing.T) {
	got, err := parseClauses("libc6 (>= 2.34), awk | mawk:any (<<1.3~), python3:any,\n  perl-base (= 5.36.0-7),")
	if err != nil {
		t.Fatal(err)
	}
	want := []clause{
		{{"libc6", ">=", "2.34"}}, {{"awk", "", ""}, {"mawk", "<<", "1.3~"}}, {{"python3", "", ""}}, {{"perl-base", "=", "5.36.0-7"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(relation{})); diff != "" {
		t.Error(diff)
	}
	if got, want := got[1].String(), "awk | mawk (<< 1.3~)"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	for _, text := range []string{"a b", "a (>= 1", "a (1)", "a (>=> 1)", "a (>= 1) x", "|", "a [amd64]", "(>= 1)"} {
		if got, err := parseClauses(text); err == nil {
			t.Errorf("%q: got %v; want an error", text, got)
		}
	}
}

func TestRelationAllows(t *testing.T) {
	for text, want := range map[string]bool{
		"a": true, "a (= 1.5)": true, "a (= 1.5-1)": false, "a (>= 1.5)": true, "a (>> 1.5)": false, "a (<< 1.5)": false, "a (<= 1.5)": true,
		"a (>> 1.5~)": true, "a (< 1.5)": true, "a (> 1.5)": true, "a (>= 1:0)": false,
	} {
		c, err := parseClauses(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := c[0][0].allows("1.5"); got != want {
			t.Errorf("%s by 1.5: got %v; want %v", text, got, want)
		}
	}
}

func FuzzParseClauses(f *testing.F) {
	f.Add("libc6 (>= 2.34), awk | mawk:any (<< 1.3~)")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseClauses(text)
		if err != nil {
			return
		}
		for _, c := range all {
			again, err := parseClauses(c.String())
			if err != nil || len(again) != 1 {
				t.Fatalf("%q, written as %q: %v", text, c, err)
			}
			if diff := cmp.Diff(c, again[0], cmp.AllowUnexported(relation{})); diff != "" {
				t.Errorf("%q: %s", text, diff)
			}
		}
	})
}
