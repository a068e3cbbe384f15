package tree

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"cupola/test/cputime"
)

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		text string
		want any
	}{
		{"", nil},
		{"---\n", nil},
		{"{a: 1, b: 1.5, c: true, d: null, e: x, 5: y}", map[string]any{"a": 1, "b": 1.5, "c": true, "d": nil, "e": "x", "5": "y"}},
		{"{a: 2026-01-02, b: .nan, c: 0x10, d: 18446744073709551615, e: 1e400}", map[string]any{"a": "2026-01-02", "b": ".nan", "c": 16, "d": uint64(18446744073709551615), "e": "1e400"}},
		{"{a: &x {y: 1}, b: *x}", map[string]any{"a": map[string]any{"y": 1}, "b": map[string]any{"y": 1}}},
		{"a: &x {y: 1, z: 2}\nb: {<<: *x, z: 3}", map[string]any{"a": map[string]any{"y": 1, "z": 2}, "b": map[string]any{"y": 1, "z": 3}}},
		{"{<<: [{a: 1}, {a: 2, b: 3}], c: 4}", map[string]any{"a": 1, "b": 3, "c": 4}},
		{"- !!binary aGk=\n- !mine x\n- !!str 5\n", []any{"hi", "x", "5"}},
		{"- |\n  a\n  b\n- 'true'\n", []any{"a\nb\n", "true"}},
	} {
		n, err := Load([]byte(c.text))
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, Value(n)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
		text, err := Write(n)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Load(text)
		if err != nil {
			t.Fatalf("%q became %q: %v", c.text, text, err)
		}
		if diff := cmp.Diff(Value(n), Value(again)); diff != "" {
			t.Errorf("%q written and read (-first +again):\n%s", c.text, diff)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a: 1\na: 2\nb: {c: 1, c: 2}", `line 2: the key "a" is there twice; line 3: the key "c" is there twice`},
		{"? [a]\n: b", "line 1: a list cannot be a key"},
		{"a: &x [*x]", "line 1: *x contains itself"},
		{"a: *x", "unknown anchor 'x' referenced"},
		{"<<: 5", "line 1: << takes a map, got a number"},
		{"a: 1\n---\nb: 2", "there is more than one YAML document"},
		{"a: [", "line 1: did not find expected node content"},
		{strings.Repeat(" ", MaxBytes+1), "the document has 1048577 bytes; at most 1048576 are read"},
	} {
		if _, err := Load([]byte(c.text)); fmt.Sprint(err) != c.want {
			t.Errorf("%.60q: got %v; want %s", c.text, err, c.want)
		}
	}
}

// hostile are documents that grow, nest or repeat beyond reason.
func hostile() map[string]string {
	const size = 256 << 10
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ","))
	}
	full := func(s string) string { return strings.Repeat(s, size/len(s)) }
	return map[string]string{
		"bomb":         bomb,
		"merge bomb":   strings.NewReplacer("[x,x,x,x,x,x,x,x,x]", "{y: 1}", "[", "{<<: [", "]", "]}").Replace(bomb),
		"text bomb":    "a: &a " + strings.Repeat("x", 1<<19) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", 1000), ",") + "]\n",
		"brackets":     full("["),
		"closed":       strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"braces":       full("{a: "),
		"dashes":       full("- "),
		"questions":    full("? "),
		"indentation":  strings.Repeat("- ", 9000) + "x",
		"items":        full("- a\n"),
		"keys":         full("? a\n"),
		"comments":     full("#\n"),
		"trailing":     full("a #\n"),
		"item comment": full("- a #\n"),
		"deep comment": full("- #\n "),
		"anchors":      full("- &a x\n"),
		"aliases":      "- &a x\n" + strings.Repeat("- *a\n", size/5),
		"quotes":       full("\""),
		"tags":         full("!!"),
		"documents":    full("---\n"),
		"flow":         "[" + strings.Repeat("a,", MaxBytes/2-2) + "]",
		"colons":       full("a: "),
		"tabs":         full("\t"),
		"zeros":        full("\x00"),
		"folded":       "a: >\n" + full(" x\n"),
		"blank lines":  "a: |\n" + full("\n"),
	}
}

// TestHostileDocumentsEnd holds that they do soon, with an error or within the
// limits.
func TestHostileDocumentsEnd(t *testing.T) {
	for name, text := range hostile() {
		var n *yaml.Node
		var err error
		took := cputime.Of(func() { n, err = Load([]byte(text)) })
		t.Logf("%-12s %8v %v", name, took.Round(time.Millisecond), err)
		if took > 20*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		if err == nil {
			if _, err := Copy(n); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if len(err.Error()) > 1000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func TestPaths(t *testing.T) {
	for _, key := range []string{"a", "a/b", "~", "~1", "a=b", "a:b?", "", "~0~1~2"} {
		if got := Unescape(Escape(key)); got != key {
			t.Errorf("%q became %q and %q", key, Escape(key), got)
		}
	}
}

// TestTextsInQuotes writes texts that YAML 1.1 would take for booleans.
func TestTextsInQuotes(t *testing.T) {
	n, err := Of([]any{"y", "N", "yes", "off", "yn", "x", ""})
	if err != nil {
		t.Fatal(err)
	}
	const want = "- \"y\"\n- \"N\"\n- \"yes\"\n- \"off\"\n- yn\n- x\n- \"\"\n"
	if got, err := Write(n); err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestOf(t *testing.T) {
	v := map[string]any{"b": []any{1, 2.5, true, nil, "5", "a\nb\n"}, "a": map[string]any{"x": "y"}}
	n, err := Of(v)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(v), Value(n)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := Write(n)
	if want := "a:\n  x: \"y\"\nb:\n  - 1\n  - 2.5\n  - true\n  - null\n  - \"5\"\n  - |\n    a\n    b\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v; want %q", text, err, want)
	}
	var deep any = "x"
	for range MaxDepth + 1 {
		deep = []any{deep}
	}
	if _, err := Of(deep); err == nil {
		t.Error("it nests deeper than it may")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("a: &x {b: [1, 2]}\nc: {<<: *x}\n")
	f.Add("- |\n  x\n- !!str 5\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Load([]byte(text))
		if err != nil {
			return
		}
		again, err := Of(Value(n))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Value(n), Value(again)); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}
