package interpolate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh/tree"
)

var values = Values{"n": 5, "s": "text", "f": 1.5, "b": true, "none": nil, "list": []any{1, "((s))"}, "map": map[string]any{"x": map[string]any{"y": 7}, "z": "q"}, "digits": map[string]any{"0": "zero"},
	"ssl/ca": "path", "date": "2026-01-02", "number": "12", "lines": "a\nb\n"}

func TestApply(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"((n))", "5"},
		{"(( n ))", "5"},
		{"((!n))", "5"},
		{"a((n))b((s))", "a5btext"},
		{"((n))((n))", "'55'"},
		{"((list))", "[1, '((s))']"}, // values are not interpolated
		{"((map.x.y))", "7"},
		{"((map/z))", "q"},
		{"((list.0))", "1"},
		{"((list.-1))", "'((s))'"},
		{"((digits.0))", "zero"},
		{"((ssl/ca))", "path"},
		{"((none))", "null"},
		{"((b))", "true"},
		{"((number))", "'12'"},
		{"((date))", "'2026-01-02'"},
		{"{((s)): 1, x-((n)): ((f))}", "{text: 1, x-5: 1.5}"},
		{"[((s)), {a: ((map.x))}]", "[text, {a: {y: 7}}]"},
		{"((missing))", "((missing))"},
		{"((missing)) ((s))", "((missing)) text"},
		{"(s) (( )) ((a b)) ((s)", "(s) (( )) ((a b)) ((s)"},
		{"'((lines))'", "\"a\\nb\\n\""},
	} {
		n, err := tree.Load([]byte(c.text))
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		want, err := tree.Load([]byte(c.want))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := Apply(n, values)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(tree.Value(want), tree.Value(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	const supported = " Supported types for interpolation within a string are integers and strings."
	for _, c := range []struct{ text, want string }{
		{"a ((b))", "Invalid type 'bool' for value 'true' and variable 'b'." + supported},
		{"a ((f))", "Invalid type 'float64' for value '1.5' and variable 'f'." + supported},
		{"a ((!map.x))", "Invalid type 'map[interface {}]interface {}' for value 'map[y:7]' and variable 'map.x'." + supported},
		{"((map.q))", "Finding variable 'map.q': Expected to find a map key 'q' for path '/q' (found map keys: 'x', 'z')"},
		{"((map.x.q))", "Finding variable 'map.x.q': Expected to find a map key 'q' for path '/x/q' (found map keys: 'y')"},
		{"((s.q))", "Finding variable 's.q': Expected to find a map at path '/q' but found 'string'"},
		{"{((s)): 1, text: 2}", `line 1: the key "text" is there twice, with the variables in it`},
		{"{((list)): 1}", "line 1: a list cannot be a key"},
	} {
		n, err := tree.Load([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Apply(n, values); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v; want %s", c.text, err, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	n, err := tree.Load([]byte("{a: ((n)), b: [((gone.x)), ((!lost))], c: ((map.z))}"))
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := Apply(n, Values{"n": 1, "map": map[string]any{"z": 1}, "over": 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Report{Used: []string{"map", "n"}, Unused: []string{"over"}, Missing: []string{"gone", "lost"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUndeclare(t *testing.T) {
	n, err := tree.Load([]byte("{a: ((n)), variables: [{name: n, type: password}, {name: lost, type: password}, {name: over}, {type: x}]}"))
	if err != nil {
		t.Fatal(err)
	}
	values := Values{"n": 1, "over": 1, "more": 1}
	out, r, err := Apply(n, values)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = Undeclare(out, values, r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Report{Used: []string{"n", "over"}, Unused: []string{"more"}, Missing: []string{"lost"}}, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any(map[string]any{"a": 1, "variables": []any{map[string]any{"name": "lost", "type": "password"}, map[string]any{"type": "x"}}}), tree.Value(out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := r.Check(false, false); err != nil {
		t.Errorf("got %v", err)
	}
	if err := r.Check(true, true); err == nil || err.Error() != "Expected to find variables:\n  lost\nExpected to use variables:\n  more" {
		t.Errorf("got %v", err)
	}
}

func TestUndeclareErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{variables: 5}":             "variables: expected a list, got a number",
		"{variables: [~, x]}":        "variables/1: expected a map, got text",
		"{variables: [{name: [n]}]}": "variables/0/name: expected text, got a list",
		"{variables: [{type: {}}]}":  "variables/0/type: expected text, got a map",
		"{variables: [{name: n/a}, {name: n/a}, {name: lost}, {name: lost}]}": "Expected to find exactly one matching array item for path '/variables/name=n~1a' but found 2",
	} {
		n, err := tree.Load([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Undeclare(n, Values{"n/a": 1}, Report{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v; want %s", text, err, want)
		}
	}
}

func TestReferences(t *testing.T) {
	n, err := tree.Load([]byte("a:\n- name: x/y\n  v: ((n.f))((!m))\n- [((o))]\n((key)): 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Reference{
		{"n", []string{"f"}, "/a/name=x~1y/v", 3}, {"m", []string{}, "/a/name=x~1y/v", 3},
		{"o", []string{}, "/a/1/0", 4}, {"key", []string{}, "/((key))", 5},
	}
	if diff := cmp.Diff(want, References(n)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestValuesThatGrowEnd has small values that come to more than any machine holds.
func TestValuesThatGrowEnd(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	wide := make([]any, 1000)
	for i := range wide {
		wide[i] = i
	}
	for _, c := range []struct {
		text  string
		value any
		want  string
	}{
		{"- a((v))\n", long, "variables come to more than 16777216 bytes of text"},
		{"- ((v))\n", long, "the document has more than 16777216 bytes of text, with its aliases resolved"},
		{"- ((v))\n", wide, "the document has more than 200000 values, with its aliases resolved"},
	} {
		n, err := tree.Load([]byte(strings.Repeat(c.text, 1000)))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Apply(n, Values{"v": c.value}); fmt.Sprint(err) != c.want {
			t.Errorf("%q: got %v; want %s", c.text, err, c.want)
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add("{a: ((b.c)), ((b)): x((d))y}", "{b: {c: 1}, d: e}")
	f.Add("((a))", "a: [((a))]")
	f.Fuzz(func(t *testing.T, doc, vars string) {
		n, err := tree.Load([]byte(doc))
		if err != nil {
			return
		}
		v, err := tree.Load([]byte(vars))
		if err != nil {
			return
		}
		m, _ := tree.Value(v).(map[string]any)
		out, r, err := Apply(n, m)
		if err != nil {
			return
		}
		if _, err := tree.Copy(out); err != nil {
			t.Error(err)
		}
		if len(r.Used)+len(r.Unused) != len(m) {
			t.Errorf("got %+v of %v", r, m)
		}
	})
}
