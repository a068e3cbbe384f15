package api

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateDocs = flag.Bool("update", false, "write docs/api-coverage.md anew")

// known is a line of testdata/cc-routes.txt.
type known struct {
	pattern string
	own     bool   // not of Cloud Controller
	why     string // it is not served; what it is, when it is our own
}

func (k known) served() bool { return k.own || k.why == "" }

// group is the noun that the route begins with.
func (k known) group() string {
	parts := strings.Split(k.pattern, "/")
	if len(parts) < 3 {
		return "root"
	}
	return parts[2]
}

func knownRoutes(t *testing.T) (list []known) {
	t.Helper()
	data, err := os.ReadFile("testdata/cc-routes.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		rest, own := strings.CutPrefix(line, "+ ")
		pattern, why, _ := strings.Cut(rest, " : ")
		list = append(list, known{pattern, own, why})
	}
	return list
}

// probes finds by a request which row of the route table serves a route.
func probes() func(pattern string) string {
	mux := http.NewServeMux()
	for _, rt := range (&Server{}).routes() {
		mux.HandleFunc(rt.pattern, func(http.ResponseWriter, *http.Request) {})
	}
	return func(pattern string) string {
		method, path, _ := strings.Cut(pattern, " ")
		r, err := http.NewRequest(method, "http://x"+strings.NewReplacer("{$}", "", "{", "", "}", "").Replace(path), nil)
		if err != nil {
			return ""
		}
		_, found := mux.Handler(r)
		return found
	}
}

// TestCoverage holds the route table against what Cloud Controller has: what is
// not served has a reason in the table, and docs/api-coverage.md says so.
func TestCoverage(t *testing.T) {
	list := knownRoutes(t)
	probe := probes()
	reached := map[string]bool{}
	for _, k := range list {
		found := probe(k.pattern)
		reached[found] = true
		if k.served() != (found != "") {
			t.Errorf("%s: served by %q; the table says of it: %t %s", k.pattern, found, k.served(), k.why)
		}
	}
	for _, rt := range (&Server{}).routes() {
		if _, path, _ := strings.Cut(rt.pattern, " "); strings.HasPrefix(path, "/v3") && !reached[rt.pattern] {
			t.Errorf("%s is not in testdata/cc-routes.txt: add it, as our own with +", rt.pattern)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(list), func(k known) bool { return k.own })); n != 250 {
		t.Errorf("got %d routes of Cloud Controller; want 250", n)
	}
	const file = "../../docs/api-coverage.md"
	text := coverageDoc(list) + v2Doc(t, probe)
	if *updateDocs {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text, string(got)); d != "" {
		t.Errorf("%s is old, run with -update: %s", file, d)
	}
}

func coverageDoc(list []known) string {
	var groups []string
	all, served := map[string]int{}, map[string]int{}
	total := 0
	var missing, own strings.Builder
	for _, k := range list {
		switch {
		case k.own:
			fmt.Fprintf(&own, "- `%s`: %s\n", k.pattern, k.why)
			continue
		case k.served():
			total++
			served[k.group()]++
		default:
			fmt.Fprintf(&missing, "- `%s`: %s\n", k.pattern, k.why)
		}
		if all[k.group()]++; all[k.group()] == 1 {
			groups = append(groups, k.group())
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Coverage of the v3 API\n\nOf the 250 routes of Cloud Controller's v3 API, %d are served. A test compares this page with the route table;\n"+
		"[another](../server/api/testdata/roles-routes.txt) has what each role gets of each route.\n\n", total)
	b.WriteString("| routes | of | served |\n|---|---:|---:|\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", g, all[g], served[g])
	}
	if missing.Len() > 0 {
		b.WriteString("\n## Not served\n\n" + missing.String())
	}
	b.WriteString("\n## Also served\n\n" + own.String())
	return b.String()
}

// v2Doc lists what of the v2 API is served, and what is not, with the v3 route for it.
func v2Doc(t *testing.T, probe func(string) string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n## The v2 API\n\nCloud Foundry is about to remove it. What older plugins, scripts and providers read is served in its form: `metadata` and `entity`, `total_results`,\n" +
		"`q=name:x` and `q=name IN x,y` (no comparisons), `page`, `results-per-page`, `order-direction`. Relations are URLs; `inline-relations-depth` inlines the stack of an app\n" +
		"alone, which the CLI needs for its plugins. What one may not see is forbidden (403), where the v3 API does not find it. Nothing can be written.\n\n")
	for _, rt := range (&Server{}).routes() {
		if strings.HasPrefix(rt.pattern, "GET /v2/") {
			fmt.Fprintf(&b, "- `%s`\n", rt.pattern)
		}
	}
	b.WriteString("\nNot served, with the v3 route for it:\n\n")
	data, err := os.ReadFile("testdata/v2-missing.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		path, instead, ok := strings.Cut(strings.TrimSpace(line), " : ")
		if !ok {
			continue
		}
		if found := probe("GET " + path); found != "" {
			t.Errorf("testdata/v2-missing.txt has %s, which is served by %s", path, found)
		}
		fmt.Fprintf(&b, "- `GET %s`: `%s`\n", path, instead)
	}
	return b.String()
}
