package api

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A case of testdata/differential: what Cloud Controller answers to a request,
// known from its documentation, message classes and controllers.
type differential struct {
	line               int
	user               string
	method, path, body string
	want               outcome
	differs            *outcome // what we answer instead, for a reason
	keep               string   // the name under which the answer's GUID is kept
}

// outcome is an answer: of a failure its code, title and detail, of a success what
// its JSON must contain.
type outcome struct {
	status int
	code   int
	title  string
	detail string
	json   string
	more   []outcome // further errors of the same answer
}

func (o outcome) String() string {
	if o.title == "" {
		return strings.TrimSpace(fmt.Sprintf("%d %s", o.status, o.json))
	}
	return fmt.Sprintf("%d %d %s %s", o.status, o.code, o.title, o.detail)
}

var (
	caseLine    = regexp.MustCompile(`^(?:as (\S+) )?(GET|POST|PATCH|PUT|DELETE) (\S+)(?: (.*))?$`)
	failureLine = regexp.MustCompile(`^([0-9]{3}) ([0-9]+) (\S+)(?: (.*))?$`)
	successLine = regexp.MustCompile(`^([0-9]{3})(?: (\{.*\}))?$`)
)

// TestDifferential asks what the tables have and wants Cloud Controller's answers.
// The cases of a file share a world and run in its order.
func TestDifferential(t *testing.T) {
	files, err := filepath.Glob("testdata/differential/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	total, differ := 0, 0
	for _, file := range files {
		cases := readDifferential(t, file)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			w := newWorld(t)
			w.write(seedAccess)
			for _, c := range cases {
				total++
				if c.differs != nil {
					differ++
				}
				w.compare(t, file, c)
			}
		})
	}
	if total < leastCases {
		t.Errorf("the tables have %d cases; want at least %d", total, leastCases)
	}
	t.Logf("%d cases, of which %d differ for a reason", total, differ)
}

// leastCases is how many cases the tables have at least.
const leastCases = 600

func (w *world) compare(t *testing.T, file string, c differential) {
	t.Helper()
	kind := ""
	if strings.HasPrefix(c.body, "applications:") || strings.HasPrefix(c.body, "---") {
		kind = "application/x-yaml"
	}
	got := w.ask(c.user, c.method, w.fill(c.path), w.fill(c.body), kind)
	at := fmt.Sprintf("%s:%d: %s %s %.200s", file, c.line, c.method, c.path, c.body)
	want := c.want
	if c.differs != nil {
		if c.want.fits(got) {
			t.Errorf("%s: the answer is Cloud Controller's; take the mark away", at)
		}
		want = *c.differs
	}
	want.detail, want.json = w.fill(want.detail), w.fill(want.json)
	if !want.fits(got) {
		t.Errorf("%s\n got %d %s\nwant %s", at, got.status, got.text, want)
	}
	if object, ok := got.json.(map[string]any); ok && c.keep != "" {
		w.saved[c.keep], _ = object["guid"].(string)
	}
}

// fits reports whether an answer is the outcome.
func (o outcome) fits(a answer) bool {
	if a.status != o.status {
		return false
	}
	if o.title == "" {
		var want any
		return o.json == "" || json.Unmarshal([]byte(o.json), &want) == nil && hasAll(a.json, want)
	}
	object, _ := a.json.(map[string]any)
	e := object
	list, ok := object["errors"].([]any)
	if ok && len(list) == 1+len(o.more) {
		e, _ = list[0].(map[string]any)
		return o.is(e) && !slices.ContainsFunc(o.more, func(m outcome) bool {
			e, _ = list[1+slices.IndexFunc(o.more, m.equal)].(map[string]any)
			return !m.is(e)
		})
	}
	return !ok && e["code"] == float64(o.code) && e["error_code"] == o.title && e["description"] == o.detail
}

func (o outcome) equal(other outcome) bool { return o.detail == other.detail }

// is reports whether the outcome is that error.
func (o outcome) is(e map[string]any) bool {
	return e["code"] == float64(o.code) && e["title"] == o.title && e["detail"] == o.detail
}

// hasAll reports whether a JSON value has what another has; lists must be equal.
func hasAll(got, want any) bool {
	object, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(got, want)
	}
	have, ok := got.(map[string]any)
	for k, v := range object {
		x, there := have[k]
		ok = ok && there && hasAll(x, v)
	}
	return ok
}

// readDifferential reads a table. A case is a line with the request, then indented
// lines: the answer of Cloud Controller, a line for each of several errors, "! " and the one we give instead, and
// "keep NAME".
func readDifferential(t *testing.T, file string) (cases []differential) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		case !strings.HasPrefix(line, " "):
			m := caseLine.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("%s:%d: cannot read %q", file, i+1, line)
			}
			c := differential{line: i + 1, user: "admin", method: m[2], path: m[3], body: strings.ReplaceAll(long(m[4]), `\n`, "\n")}
			if m[1] != "" {
				c.user = m[1]
			}
			cases = append(cases, c)
		default:
			readOutcome(t, fmt.Sprintf("%s:%d", file, i+1), trimmed, &cases[len(cases)-1])
		}
	}
	return cases
}

func readOutcome(t *testing.T, at, text string, c *differential) {
	t.Helper()
	if name, ok := strings.CutPrefix(text, "keep "); ok {
		c.keep = name
		return
	}
	ours, differs := strings.CutPrefix(text, "! ")
	o, ok := parseOutcome(long(ours))
	if !ok {
		t.Fatalf("%s: cannot read %q", at, text)
	}
	if differs {
		c.differs = &o
	} else if c.want.title != "" {
		c.want.more = append(c.want.more, o)
	} else {
		c.want = o
	}
}

func parseOutcome(text string) (o outcome, ok bool) {
	if m := failureLine.FindStringSubmatch(text); m != nil {
		o = outcome{title: m[3], detail: m[4]}
		o.status, _ = strconv.Atoi(m[1])
		o.code, _ = strconv.Atoi(m[2])
		return o, true
	}
	m := successLine.FindStringSubmatch(text)
	if m == nil {
		return o, false
	}
	o.json = m[2]
	o.status, _ = strconv.Atoi(m[1])
	return o, true
}

var repeated = regexp.MustCompile(`<(.)\*([0-9]+)>`)

// long writes out "<x*300>": 300 times x.
func long(text string) string {
	return repeated.ReplaceAllStringFunc(text, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[2])
		return strings.Repeat(m[1], n)
	})
}
