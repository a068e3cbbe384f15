package ops

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh/tree"
)

func apply(doc, file string) (any, error) {
	n, err := tree.Load([]byte(doc))
	if err != nil {
		return nil, err
	}
	all, err := Parse([]byte(file))
	if err != nil {
		return nil, err
	}
	if n, err = Apply(n, all); err != nil {
		return nil, err
	}
	return tree.Value(n), nil
}

func op(kind, path, value string) string {
	s := "- type: " + kind + "\n  path: '" + path + "'\n"
	if value != "" {
		s += "  value: " + value + "\n"
	}
	return s
}

const document = `{key: 1, list: [a, b, c], items: [{name: x, v: 1}, {name: y, v: 2}, {name: y2, v: [1]}, {name: 7}], map: {in: {deep: true}}, "a/b~c": 1, none: null, dates: [{day: 2024-01-02, v: 1}]}`

// TestChanges applies one operation to one value of the document per row.
func TestChanges(t *testing.T) {
	for _, c := range []struct{ op, look, want string }{
		{op("replace", "/key", "2"), "/key", "2"},
		{op("replace", "/key", "{a: b}"), "/key", "{a: b}"},
		{op("replace", "/new?", "2"), "/new", "2"},
		{op("replace", "/new?/a/b", "2"), "/new", "{a: {b: 2}}"},
		{op("replace", "/new?/a?/b", "2"), "/new", "{a: {b: 2}}"},
		{op("replace", "/new?/-", "2"), "/new", "[2]"},
		{op("replace", "/new?/name=z/v", "2"), "/new", "[{name: z, v: 2}]"},
		{op("replace", "/new?/name=z", "{name: z, w: 3}"), "/new", "[{name: z, w: 3}]"},
		{op("replace", "/list/0", "z"), "/list", "[z, b, c]"},
		{op("replace", "/list/-1", "z"), "/list", "[a, b, z]"},
		{op("replace", "/list/-3", "z"), "/list", "[z, b, c]"},
		{op("replace", "/list/-", "z"), "/list", "[a, b, c, z]"},
		{op("replace", "/list/0:after", "z"), "/list", "[a, z, b, c]"},
		{op("replace", "/list/0:before", "z"), "/list", "[z, a, b, c]"},
		{op("replace", "/list/-1:after", "z"), "/list", "[a, b, c, z]"},
		{op("replace", "/list/-1:before", "z"), "/list", "[a, b, z, c]"},
		{op("replace", "/list/0:next", "z"), "/list", "[a, z, c]"},
		{op("replace", "/list/2:prev", "z"), "/list", "[a, z, c]"},
		{op("replace", "/list/0:next:next", "z"), "/list", "[a, b, z]"},
		{op("replace", "/list/0:next:after", "z"), "/list", "[a, b, z, c]"},
		{op("replace", "/list/3:prev", "z"), "/list", "[a, b, z]"},
		{op("replace", "/items/name=y/v", "9"), "/items/name=y/v", "9"},
		{op("replace", "/items/name=x:next/v", "9"), "/items/name=y/v", "9"},
		{op("replace", "/items/name=x:after", "{name: n}"), "/items/1", "{name: n}"},
		{op("replace", "/items/name=x:before", "{name: n}"), "/items/0", "{name: n}"},
		{op("replace", "/items/name=z?/v", "9"), "/items/-1", "{name: z, v: 9}"},
		{op("replace", "/a~1b~0c", "9"), "/a~1b~0c", "9"},
		{op("replace", "", "9"), "", "9"},
		{op("replace", "/none", "9"), "/none", "9"},
		{op("remove", "/key", ""), "/key?", "null"},
		{op("remove", "/new?", ""), "/list", "[a, b, c]"},
		{op("remove", "/new?/a/b", ""), "/list", "[a, b, c]"},
		{op("remove", "/map?/zz/b", ""), "/map", "{in: {deep: true}}"},
		{op("remove", "/list/0", ""), "/list", "[b, c]"},
		{op("remove", "/list/-1", ""), "/list", "[a, b]"},
		{op("remove", "/list/0:next", ""), "/list", "[a, c]"},
		{op("remove", "/items/name=y", ""), "/items/1/name", "y2"},
		{op("remove", "/items/name=zz?", ""), "/items/1/name", "y"},
		{op("remove", "/items/name=zz?/v", ""), "/items/1/name", "y"},
		{op("remove", "/map/in/deep", ""), "/map", "{in: {}}"},
		{op("test", "/key", "1"), "/key", "1"},
		{op("test", "/map", "{in: {deep: true}}"), "/key", "1"},
		{"- {type: test, path: /zz, absent: true}", "/key", "1"},
		{"- {type: test, path: '/zz?/name=w?/name', value: w}", "/key", "1"}, // as if it were there
		{"- {type: test, path: '/zz?/y', absent: false}", "/zz?", "null"},
		{"- {type: test, path: /zz, absent: yes}", "/key", "1"},
		{"- {type: remove, path: /key, value: null, error: ~}", "/key?", "null"}, // null is as good as nothing
		{"- {type: replace, path: /key, value: Null}", "/key", "null"},           // but not when it is written so
		{op("replace", "/dates/day=2024-01-02/v", "9"), "/dates/0/v", "9"},
		{"- {type: replace, path: /key, value: 2, note: why, release: r}", "/key", "2"}, // as the bosh CLI, which reads no other keys
	} {
		n, err := tree.Load([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		all, err := Parse([]byte(c.op))
		if err == nil {
			n, err = Apply(n, all)
		}
		if err == nil {
			n, err = Find(n, c.look)
		}
		if err != nil {
			t.Errorf("%s: %v", c.op, err)
			continue
		}
		want, err := tree.Load([]byte(c.want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tree.Value(want), tree.Value(n)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.op, diff)
		}
	}
}

// TestErrors checks the bosh CLI's messages.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ op, want string }{
		{op("replace", "/zz", "1"), "Expected to find a map key 'zz' for path '/zz' (found map keys: 'a/b~c', 'dates', 'items', 'key', 'list', 'map', 'none')"},
		{op("replace", "/map/zz/x", "1"), "Expected to find a map key 'zz' for path '/map/zz' (found map keys: 'in')"},
		{op("remove", "/zz", ""), "Expected to find a map key 'zz' for path '/zz' (found map keys: 'a/b~c', 'dates', 'items', 'key', 'list', 'map', 'none')"},
		{op("replace", "/items/name=zz", "1"), "Expected to find exactly one matching array item for path '/items/name=zz' but found 0"},
		{op("replace", "/items/name=7", "1"), "Expected to find exactly one matching array item for path '/items/name=7' but found 0"},
		{op("replace", "/items/-", "{name: x}") + op("remove", "/items/name=x", ""), "Expected to find exactly one matching array item for path '/items/name=x' but found 2"},
		{op("replace", "/list/3", "1"), "Expected to find array index '3' but found array of length '3' for path '/list/3'"},
		{op("remove", "/list/-4", ""), "Expected to find array index '-4' but found array of length '3' for path '/list/-4'"},
		{op("replace", "/list/2:next", "1"), "Expected to find array index '3' but found array of length '3' for path '/list/2:next'"},
		{op("replace", "/list/a", "1"), "Expected to find a map at path '/list/a' but found '[]interface {}'"},
		{op("replace", "/map/0", "1"), "Expected to find an array at path '/map/0' but found 'map[interface {}]interface {}'"},
		{op("replace", "/map/a=b", "1"), "Expected to find an array at path '/map/a=b' but found 'map[interface {}]interface {}'"},
		{op("replace", "/map/-", "1"), "Expected to find an array at path '/map/-' but found 'map[interface {}]interface {}'"},
		{op("replace", "/key/a", "1"), "Expected to find a map at path '/key/a' but found 'int'"},
		{op("replace", "/key", "{v: [1e3]}") + op("replace", "/key/v/0/a", "1"), "Expected to find a map at path '/key/v/0/a' but found 'int'"},
		{op("replace", "/key", "1e6") + op("replace", "/key/a", "1"), "Expected to find a map at path '/key/a' but found 'float64'"},
		{op("replace", "/none/a", "1"), "Expected to find a map at path '/none/a' but found '<nil>'"},
		{op("replace", "/new?/0", "1"), "Expected to find key, matching index or after last index token at path '/new?/0'"},
		{op("replace", "/a?/b?/0", "1"), "Expected to find key, matching index or after last index token at path '/a?/b/0'"},
		{op("remove", "/list/-", ""), "Expected to not find token 'patch.AfterLastIndexToken' at path '/list/-'"},
		{op("remove", "", ""), "Cannot remove entire document"},
		{op("remove", "/list/0:before", ""), "Expected to find one of the following modifiers: 'prev', 'next', but found modifier 'patch.BeforeModifier'"},
		{op("replace", "/list/0:before:next", "1"), "Expected to not find any modifiers after 'before' modifier, but found modifier 'patch.NextModifier'"},
		{op("test", "/key", "2"), "Found value does not match expected value"},
		{"- {type: test, path: /key, absent: true}", "Expected to not find '/key'"},
		{"- {type: remove, path: /zz, error: look here}", "Error 'look here': Expected to find a map key 'zz' for path '/zz' (found map keys: 'a/b~c', 'dates', 'items', 'key', 'list', 'map', 'none')"},
		{"- {type: remove, path: /zz, error: ~}", "Expected to find a map key 'zz' for path '/zz' (found map keys: 'a/b~c', 'dates', 'items', 'key', 'list', 'map', 'none')"},
		{"- {type: remove, path: ~}", "Remove operation [0]: Missing path within { \"Type\": \"remove\" }"},
		{"- {type: test, path: /key, absent: maybe}", "operation [0]: line 1: cannot unmarshal !!str `maybe` into bool"},
		{"- {type: copy, path: /zz}", "Unknown operation [0] with type 'copy' within { \"Type\": \"copy\", \"Path\": \"/zz\" }"},
		{"- x", "operation [0]: expected a map, got text"},
		{"- ~", "Unknown operation [0] with type '' within {}"},
		{"- {type: remove}", "Remove operation [0]: Missing path within { \"Type\": \"remove\" }"},
		{"- {type: remove, path: /a, value: 1}", "Remove operation [0]: Cannot specify value within { \"Type\": \"remove\", \"Path\": \"/a\", \"Value\": \"<redacted>\" }"},
		{"- {type: replace, path: /a}", "Replace operation [0]: Missing value within { \"Type\": \"replace\", \"Path\": \"/a\" }"},
		{op("replace", "a", "1"), "Replace operation [0]: Invalid path: Expected to start with '/' within { \"Type\": \"replace\", \"Path\": \"a\", \"Value\": \"<redacted>\" }"},
		{op("replace", "/a:b", "1"), "Replace operation [0]: Invalid path: Expected to find one of the following modifiers: 'prev', 'next', 'before', or 'after' but found 'b' within { \"Type\": \"replace\", \"Path\": \"/a:b\", \"Value\": \"<redacted>\" }"},
		{op("replace", "/a:prev", "1"), "Replace operation [0]: Invalid path: Expected not to find any modifiers with key token within { \"Type\": \"replace\", \"Path\": \"/a:prev\", \"Value\": \"<redacted>\" }"},
		{op("replace", "/a/-:prev", "1"), "Replace operation [0]: Invalid path: Expected not to find any modifiers with after last index token within { \"Type\": \"replace\", \"Path\": \"/a/-:prev\", \"Value\": \"<redacted>\" }"},
		{"- {type: test, path: /none, absent: true}", "Expected to not find '/none'"},
		{"- {type: test, path: '/zz?', absent: true}", "Expected to not find '/zz?'"},
		{"- {type: test, path: /zz/y, absent: true}", "Expected to find a map key 'zz' for path '/zz' (found map keys: 'a/b~c', 'dates', 'items', 'key', 'list', 'map', 'none')"},
		{"- {type: test, path: /items/name=zz, absent: true}", "Expected to find exactly one matching array item for path '/items/name=zz' but found 0"},
		{"- {type: test, path: /key}", "Test operation [0]: Missing value or absent within { \"Type\": \"test\", \"Path\": \"/key\" }"},
		{"- {type: test, absent: on, error: why}", "Test operation [0]: Missing path within { \"Type\": \"test\", \"Absent\": true, \"Error\": \"why\" }"},
		{"- {type: replace, path: /a, value: ~}", "Replace operation [0]: Missing value within { \"Type\": \"replace\", \"Path\": \"/a\" }"},
		{op("replace", "/list/-4:after", "1"), "Expected to find array index '-4' but found array of length '3' for path '/list/-4:after'"},
		{op("replace", "/items/name=a=b", "1"), "Expected to find exactly one matching array item for path '/items/name=a=b' but found 0"},
		{"- {type: test, path: '/zz?/0', absent: true}", "Expected to find key or matching index token at path '/zz?/0'"},
		{"- {type: test, path: '/zz?/-', absent: true}", "Expected to find key or matching index token at path '/zz?/-'"},
		{"- {type: test, path: /list/-, absent: true}", "Expected not to find after last index token in path '/list/-' (not supported in find operations)"},
		{"{}", "expected a list of operations, got a map"},
	} {
		if _, err := apply(document, c.op); err == nil || strings.Join(strings.Fields(err.Error()), " ") != c.want {
			t.Errorf("%s: got %v; want %s", c.op, err, c.want)
		}
	}
}

// TestErrorsOfAFile checks what the bosh CLI's messages say of the file.
func TestErrorsOfAFile(t *testing.T) {
	n := tree.Null()
	for text, want := range map[string]string{
		"- {type: replace, path: '', value: {a: 1}}\n- {type: remove, path: /b}": "Error 'operation [1] in o.yml failed': Expected to find a map key 'b' for path '/b' (found map keys: 'a')",
		"- {type: remove, path: /b, error: why}":                                 "Error 'operation [0] in o.yml failed': Error 'why': Expected to find a map at path '/b' but found '<nil>'",
		"- {type: remove, error: why}":                                           "Building ops: Remove operation [0]: Missing path within\n{\n  \"Type\": \"remove\",\n  \"Error\": \"operation [0] in o.yml failed\"\n}",
		"- {type: replace, path: [a], value: 1}":                                 "Building ops: operation [0] in o.yml: line 1: cannot unmarshal !!seq into string",
		"- {type: remove, path: /b}\n- 5":                                        "Building ops: operation [1] in o.yml: expected a map, got a number",
		"{}":                                                                     "Building ops: o.yml: expected a list of operations, got a map",
		"- [":                                                                    "o.yml: line 1: did not find expected node content",
	} {
		all, err := ParseFile("o.yml", []byte(text))
		if err == nil {
			_, err = Apply(n, all)
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v; want %s", text, err, want)
		}
	}
}

func TestValuesAreNotShared(t *testing.T) {
	got, err := apply("{a: {}, b: {}}", "- {type: replace, path: /a, value: &v {x: 1}}\n- {type: replace, path: /b, value: *v}\n- {type: replace, path: /a/x, value: 2}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"x": 2}, "b": map[string]any{"x": 1}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOperationsThatLookAtTooMuchEnd(t *testing.T) {
	doc := "list:\n" + strings.Repeat("- {n: a}\n", 30_000)
	if _, err := apply(doc, strings.Repeat("- {type: remove, path: '/list/n=b?'}\n", 10_000)); err == nil || err.Error() != "the operations look at too many items" {
		t.Errorf("got %v", err)
	}
}

// FuzzOps holds that no ops file brings Apply down, and that what it returns
// passes the limits.
func FuzzOps(f *testing.F) {
	f.Add(document, op("replace", "/items/name=x:after", "{a: b}"))
	f.Add(document, op("remove", "/list/-1:prev", "")+op("replace", "/new?/a=b/-", "[1]"))
	f.Add("[]", op("replace", "/-", "x")+op("test", "/0", "x"))
	f.Fuzz(func(t *testing.T, doc, file string) {
		n, err := tree.Load([]byte(doc))
		if err != nil {
			return
		}
		before := tree.Value(n)
		all, err := Parse([]byte(file))
		if err != nil {
			return
		}
		if _, err := Apply(n, all); err != nil && len(err.Error()) > 1<<20 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
		if diff := cmp.Diff(before, tree.Value(n)); diff != "" {
			t.Errorf("the document was changed: %s", diff)
		}
	})
}
