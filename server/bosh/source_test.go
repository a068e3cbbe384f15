package bosh

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/tree"
)

func TestTree(t *testing.T) {
	s := Source{
		Manifest: File{"m.yml", []byte("name: ((name))\nlist: [1]\n")},
		Ops:      []File{{"a.yml", []byte("- {type: replace, path: /list/-, value: ((two))}")}, {"b.yml", []byte("- {type: replace, path: /list/-1:before, value: x}")}},
		Values:   interpolate.Values{"name": "dep", "two": 2},
	}
	root, report, err := s.Tree()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(map[string]any{"name": "dep", "list": []any{1, "x", 2}}), tree.Value(root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"name", "two"}, report.Used); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Ops = append(s.Ops, File{"c.yml", []byte("- {type: remove, path: /gone}")})
	if _, _, err := s.Tree(); err == nil || !strings.HasPrefix(err.Error(), "Error 'operation [0] in c.yml failed': Expected to find a map key 'gone'") {
		t.Errorf("got %v", err)
	}
}

func TestValues(t *testing.T) {
	environment, err := FromEnvironment("BOSH", []string{"BOSH_a=1", "BOSH_b=[x]", "BOSHC=1", "OTHER_a=2", "BOSH_=3", "BOSH_c=a=b"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(interpolate.Values{"a": 1, "b": []any{"x"}, "c": "a=b"}, environment); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	file, err := Values(File{"v.yml", []byte("a: 2\nd: {e: f}\n")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(interpolate.Values{"a": 2, "b": []any{"x"}, "c": "a=b", "d": map[string]any{"e": "f"}}, Merged(environment, file)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string]any{"a=5": 5, "a=yes": true, "a='5'": "5", `a="x"`: "x", "a=x # y": "x # y", "a=x\n\ny": "x\n\ny", "a=~": nil, `a=""`: "", "a=6000000000": 6000000000, "a={b: 1}": map[string]any{"b": 1}} {
		if _, got, err := Assigned(text); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%q: got %#v, %v; want %#v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"a=": "Expected var 'a=' to specify non-empty value", "a": "Expected var 'a' to be in format 'name=value'", "=1": "Expected var '=1' to specify non-empty name", "a=[": "the value of a: line 1: did not find expected node content"} {
		if _, _, err := Assigned(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v; want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{"a=": "Expected var 'a=' to specify non-empty path", "a": "Expected var 'a' to be in format 'name=path'", "=f": "Expected var '=f' to specify non-empty name"} {
		if _, _, err := Assignment(text, "path"); err == nil || err.Error() != want {
			t.Errorf("%s: got %v; want %s", text, err, want)
		}
	}
	if _, err := Values(File{"v.yml", []byte("- a")}); err == nil || err.Error() != "v.yml: expected a map of variables, got a list" {
		t.Errorf("got %v", err)
	}
}

func TestNested(t *testing.T) {
	given := map[string]any{"x": 1}
	got, err := Nested(interpolate.Values{"a.b.c": 1, "a.b.d": "x", "a.e": nil, "m": given, "m.y": 2, "plain": 3})
	if err != nil {
		t.Fatal(err)
	}
	want := interpolate.Values{"a": map[string]any{"b": map[string]any{"c": 1, "d": "x"}, "e": nil}, "m": map[string]any{"x": 1, "y": 2}, "plain": 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(given) != 1 {
		t.Errorf("a value was changed: %v", given)
	}
	if _, err := Nested(interpolate.Values{"a": 1, "a.b": 2}); err == nil || err.Error() != "the variable a.b is a field, but a is not a map" {
		t.Errorf("got %v", err)
	}
}
