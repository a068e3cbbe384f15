package api

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// terraformCall is a line of testdata/terraform-calls.txt.
type terraformCall struct {
	method, path          string
	query, fields, answer []string
}

func terraformCalls(t *testing.T) (all []terraformCall) {
	t.Helper()
	text, err := os.ReadFile("testdata/terraform-calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	list := func(s string) []string {
		if s == "-" {
			return nil
		}
		return strings.Split(s, ",")
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if len(f) != 5 {
			t.Fatalf("cannot read the line %q", line)
		}
		all = append(all, terraformCall{f[0], f[1], list(f[2]), list(f[3]), list(f[4])})
	}
	if len(all) < 100 {
		t.Fatalf("got %d calls", len(all))
	}
	return all
}

// terraformValues are values of parameters that take only some.
var terraformValues = map[string]string{"page": "1", "per_page": "50", "states": "STAGED", "types": "space_developer", "include": "organization", "id": ""}

// TestTerraform holds the API to what the Terraform provider calls: each route,
// with its parameters and fields, and each key of the answers that Cloud Controller
// gave it.
func TestTerraform(t *testing.T) {
	w := newWorld(t)
	w.write(seedAccess)
	w.seedLooks()
	checked, calls := 0, terraformCalls(t)
	for _, c := range calls {
		if c.method == "GET" {
			checked += c.read(t, w)
		}
	}
	for _, c := range calls { // these delete what was read
		if c.method == "GET" {
			continue
		}
		if got := w.ask("admin", c.method, c.seeded(), bodyOf(c.fields), "").text; strings.Contains(got, "Unknown request") || strings.Contains(got, "Unknown field") {
			t.Errorf("%s %s %v: got %s", c.method, c.path, c.fields, got)
		}
	}
	if checked < 45 {
		t.Errorf("the answers of only %d reads were compared", checked)
	}
	if got := w.ask("admin", "POST", "/v3/organizations", bodyOf([]string{"name", "nonsense"}), "").text; !strings.Contains(got, "Unknown field(s): 'nonsense'") {
		t.Errorf("an unknown field is not seen: %s", got)
	}
}

// read asks once with all parameters, which must be accepted, and once without
// those that leave nothing in the list; it reports how many answers it compared.
func (c terraformCall) read(t *testing.T, w *world) int {
	t.Helper()
	if len(c.query) > 0 {
		if got := w.ask("admin", "GET", c.seeded()+"?"+strings.Join(queryOf(c.query), "&"), "", ""); got.status == 400 {
			t.Errorf("GET %s with %v: got %s", c.path, c.query, got.text)
		}
	}
	return c.check(t, w.ask("admin", "GET", c.seeded(), "", ""))
}

func queryOf(names []string) (pairs []string) {
	for _, n := range names {
		value, ok := terraformValues[n]
		if !ok {
			value = "x"
		}
		pairs = append(pairs, n+"="+value)
	}
	return pairs
}

// bodyOf is an object with the fields, "a.b" being b of a; none has a value.
func bodyOf(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	body := map[string]any{}
	for _, f := range fields {
		parts := strings.Split(f, ".")
		at := body
		for _, p := range parts[:len(parts)-1] {
			next, ok := at[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[p] = next
			}
			at = next
		}
		at[parts[len(parts)-1]] = nil
	}
	text, _ := json.Marshal(body) // of maps alone
	return string(text)
}

// seeded is the path with the GUIDs of rows that there are, as far as they are
// known.
func (c terraformCall) seeded() string {
	parts := strings.Split(c.path, "/")
	for n := len(parts); n > 1; n-- {
		for pattern, l := range looks {
			if samePath(strings.TrimPrefix(pattern, "GET "), strings.Join(parts[:n], "/")) {
				rest := strings.Join(append([]string{l.path}, parts[n:]...), "/")
				return strings.ReplaceAll(rest, "{guid}", "none")
			}
		}
	}
	return strings.ReplaceAll(c.path, "{guid}", "none")
}

var pathParameter = regexp.MustCompile(`\{[^}]*\}`)

// samePath reports whether a route's pattern is that of a recorded path.
func samePath(pattern, path string) bool {
	return pathParameter.ReplaceAllString(pattern, "{guid}") == path || regexp.MustCompile("^"+pathParameter.ReplaceAllString(pattern, `[^/]+`)+"$").MatchString(path) && strings.Count(path, "{") == strings.Count(pattern, "{guid}")
}

// check compares the keys of an answer, and reports how many answers had any.
func (c terraformCall) check(t *testing.T, got answer) int {
	t.Helper()
	if strings.Contains(got.text, "Unknown request") {
		t.Errorf("%s %s: got %s", c.method, c.path, got.text)
	}
	object, ok := got.json.(map[string]any)
	if !ok || got.status != 200 || len(c.answer) == 0 {
		return 0
	}
	rows, isList := object["resources"].([]any)
	if !isList {
		rows = []any{object}
	}
	for _, row := range rows {
		have, _ := row.(map[string]any)
		for _, key := range c.answer {
			if _, ok := have[key]; !ok {
				t.Errorf("%s %s: the answer has no %q: %v", c.method, c.path, key, have)
			}
		}
	}
	return min(len(rows), 1)
}

func TestBodyOf(t *testing.T) {
	if got := bodyOf([]string{"a", "b.c", "b.d.e"}); got != `{"a":null,"b":{"c":null,"d":{"e":null}}}` {
		t.Errorf("got %s", got)
	}
	if !slices.ContainsFunc([]string{"/v3/apps/{guid}/features/{name}"}, func(p string) bool { return samePath(p, "/v3/apps/{guid}/features/ssh") }) {
		t.Error("a named parameter is not found")
	}
}
