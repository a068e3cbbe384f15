package api

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// need is what the CLI reads of the answers of an endpoint.
type need struct {
	line   string
	path   *regexp.Regexp // of "METHOD /path"
	fields []needed
	proved map[string]bool // the fields that an answer was refused for lacking
}

type needed struct {
	path []string // "resources[]", "guid"
	kind string
}

func (n needed) String() string { return strings.Join(n.path, ".") + ":" + n.kind }

// readNeeds reads testdata/cli-needs.txt.
func readNeeds(t *testing.T) (list []*need) {
	t.Helper()
	text, err := os.ReadFile("testdata/cli-needs.txt")
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "@"):
			shapes[words[0]] = words[1:]
		default:
			path := strings.ReplaceAll(regexp.QuoteMeta(words[0]+" "+words[1]), `\*`, `[^/]+`)
			list = append(list, &need{words[0] + " " + words[1], regexp.MustCompile("^" + path + "$"), expand(t, shapes, "", words[2:]), map[string]bool{}})
		}
	}
	return list
}

func expand(t *testing.T, shapes map[string][]string, at string, words []string) (fields []needed) {
	t.Helper()
	for _, word := range words {
		if prefix, shape, ok := strings.Cut(word, "@"); ok {
			if shapes["@"+shape] == nil {
				t.Fatalf("%s is not known", word)
			}
			if prefix != "" {
				prefix += "."
			}
			fields = append(fields, expand(t, shapes, at+prefix, shapes["@"+shape])...)
			continue
		}
		path, kind, _ := strings.Cut(at+word, ":")
		fields = append(fields, needed{strings.Split(path, "."), kind})
	}
	return fields
}

// check reports which field of an answer is not what the CLI needs, and proves of
// each that it would be told if it were absent.
func (n *need) check(t *testing.T, a answer) (why string) {
	t.Helper()
	for _, f := range n.fields {
		if why := f.lacks(a.json, f.path); why != "" {
			return why
		}
		for _, broken := range without1(a.json, f.path) {
			n.proved[f.String()] = true
			if f.lacks(broken, f.path) == "" {
				t.Errorf("%s: nobody would see that %s is absent", n.line, f)
			}
		}
	}
	return ""
}

// lacks tells why v has not the field at the path.
func (n needed) lacks(v any, path []string) string {
	if len(path) == 0 {
		return n.unlike(v)
	}
	key, each := strings.CutSuffix(path[0], "[]")
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s: %v is no object", n, v)
	}
	value, ok := object[key]
	if !ok {
		return fmt.Sprintf("%s is absent", n)
	}
	if !each {
		return n.lacks(value, path[1:])
	}
	list, ok := value.([]any)
	if !ok {
		return fmt.Sprintf("%s: %s is no array", n, key)
	}
	for _, element := range list {
		if why := n.lacks(element, path[1:]); why != "" {
			return why
		}
	}
	return ""
}

var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// unlike tells why a value is not of the kind.
func (n needed) unlike(v any) string {
	kind, nullable := strings.CutSuffix(n.kind, "?")
	if v == nil && nullable {
		return ""
	}
	text, isText := v.(string)
	number, isNumber := v.(float64)
	whole := isNumber && number == math.Trunc(number)
	_, isObject := v.(map[string]any)
	_, isArray := v.([]any)
	_, isBool := v.(bool)
	good := map[string]bool{"s": isText && text != "", "S": isText, "n": whole && number >= 0, "i": whole, "b": isBool, "o": isObject, "a": isArray,
		"u": strings.HasPrefix(text, "http://"), "t": rfc3339.MatchString(text)}
	if kind == "t" {
		_, err := time.Parse(time.RFC3339, text)
		good["t"] = good["t"] && err == nil
	}
	if !good[kind] {
		return fmt.Sprintf("%s is %v", n, v)
	}
	return ""
}

// without1 gives copies of v of which one lacks the field at the path; none when
// v has no element with it.
func without1(v any, path []string) []any {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was read from JSON
	}
	var whole any
	if err := json.Unmarshal(b, &whole); err != nil || !cut(whole, path) {
		return nil
	}
	return []any{whole}
}

// cut removes the first field at the path.
func cut(v any, path []string) bool {
	object, ok := v.(map[string]any)
	if !ok {
		return false
	}
	key, each := strings.CutSuffix(path[0], "[]")
	if len(path) == 1 {
		delete(object, key)
		return true
	}
	if !each {
		return cut(object[key], path[1:])
	}
	list, _ := object[key].([]any)
	for _, element := range list {
		if cut(element, path[1:]) {
			return true
		}
	}
	return false
}
