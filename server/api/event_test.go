package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cupola/server/osb/osbtest"
	"cupola/store"
	"cupola/store/cf"
)

const auditTable = "testdata/audit-events.txt"

// auditRow is a request of the table with the events that it must write.
type auditRow struct {
	line                   int
	as, method, path, body string
	save                   string // a name for the GUID of what is answered
	comment                []string
	events                 []string
	elsewhere, never       string // in place of a request: a type of events
	why                    string
}

// TestAuditEvents makes the requests of the table in order. Each must write the events
// below it, and no others; together they are all types of Cloud Controller's list.
func TestAuditEvents(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error { return seedAccess(tx) })
	b := w.startBroker()
	b.SetCatalog(auditCatalog)
	w.saved["broker_url"] = b.URL
	zip := string(zipOf(t, "bin/compile", "x"))
	rows := readAuditTable(t)
	seen := map[string]bool{}
	for i := range rows {
		row := &rows[i]
		if row.method == "" {
			seen[row.elsewhere+row.never] = true
			row.checkSource(t)
			continue
		}
		if row.method == "BROKER" {
			adjust(b, row.path)
			continue
		}
		got := w.auditedBy(t, row, zip)
		for _, e := range got {
			seen[e[:strings.IndexByte(e, ' ')]] = true
		}
		if os.Getenv("CUPOLA_WRITE_TABLES") != "" {
			row.events = got
			continue
		}
		w.compareEvents(t, row, got)
	}
	if os.Getenv("CUPOLA_WRITE_TABLES") != "" {
		w.writeAuditTable(t, rows)
	}
	types, err := os.ReadFile("testdata/cc-audit-types.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(types)) {
		if !seen[line] {
			t.Errorf("no row of the table writes %s", line)
		}
	}
}

// auditCatalog has a route service whose bindings can be made asynchronously.
var auditCatalog = strings.Replace(osbtest.Catalog, `"a route service"`, `"a route service", "bindings_retrievable": true`, 1)

// adjust makes a broker asynchronous, or gives it another catalog.
func adjust(b *osbtest.Broker, what string) {
	switch what {
	case "async":
		b.SetAsync(true, 1)
	case "sync":
		b.SetAsync(false, 1)
	case "catalog":
		b.SetCatalog(strings.NewReplacer(`"a database"`, `"another database"`, `"a small one"`, `"a tiny one"`).Replace(auditCatalog))
	}
}

// checkSource checks that a test that a row names is about its type.
func (r *auditRow) checkSource(t *testing.T) {
	if r.elsewhere == "" {
		return
	}
	path, name, _ := strings.Cut(r.why, " ")
	text, err := os.ReadFile("../../" + path)
	if err != nil || !bytes.Contains(text, []byte("func "+name+"(")) || !bytes.Contains(text, []byte(r.elsewhere)) {
		t.Errorf("line %d: %s of %s does not expect %s, %v", r.line, name, path, r.elsewhere, err)
	}
}

func readAuditTable(t *testing.T) (rows []auditRow) {
	t.Helper()
	text, err := os.ReadFile(auditTable)
	if err != nil {
		t.Fatal(err)
	}
	var comment []string
	for i, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || first == "#":
			comment = append(comment, line)
			continue
		case first == "":
			last := &rows[len(rows)-1]
			last.events = append(last.events, strings.TrimSpace(line))
			continue
		}
		row := auditRow{line: i + 1, as: "admin", comment: comment}
		comment = nil
		switch first {
		case "elsewhere":
			row.elsewhere, row.why, _ = strings.Cut(rest, " ")
		case "never":
			row.never, row.why, _ = strings.Cut(rest, " ")
		default:
			row.parse(line)
		}
		rows = append(rows, row)
	}
	return rows
}

// parse reads a request: [USER:]METHOD PATH [BODY] [=> NAME].
func (r *auditRow) parse(line string) {
	if rest, name, ok := strings.Cut(line, " => "); ok {
		line, r.save = rest, name
	}
	r.method, line, _ = strings.Cut(line, " ")
	r.path, r.body, _ = strings.Cut(line, " ")
	if user, method, ok := strings.Cut(r.method, ":"); ok {
		r.as, r.method = user, method
	}
}

// auditedBy makes a request, waits for its job, and gives the events it wrote.
func (w *world) auditedBy(t *testing.T, row *auditRow, zip string) (lines []string) {
	t.Helper()
	before := w.events(t)
	path, body, kind := w.fill(row.path), w.fill(row.body), ""
	var got answer
	switch {
	case row.method == "UPLOAD":
		got = w.upload(row.as, path, "x.zip", []byte(zip))
	case row.method == "UPLOAD-DROPLET":
		got = w.upload(row.as, path, "x.tgz", tgzOf(t, "app/run", "x"))
	case strings.HasSuffix(path, "/apply_manifest"):
		text, err := strconv.Unquote(body)
		if err != nil {
			t.Fatalf("line %d: %v", row.line, err)
		}
		body, kind = text, "application/x-yaml"
		fallthrough
	default:
		got = w.ask(row.as, row.method, path, body, kind)
	}
	if got.status >= 400 {
		t.Fatalf("line %d: %s %s: got %d %s", row.line, row.method, path, got.status, got.text)
	}
	if at := got.header.Get("Location"); strings.Contains(at, "/v3/jobs/") {
		w.jobDone(t, row, strings.TrimPrefix(at, w.url))
	}
	if row.save != "" {
		w.saved[row.save] = w.savedOf(t, row, got)
	}
	for _, e := range w.events(t)[len(before):] {
		lines = append(lines, w.eventLine(e))
	}
	return lines
}

// savedOf is the GUID of what a request made: for what a broker makes it is found by
// its name.
func (w *world) savedOf(t *testing.T, row *auditRow, got answer) string {
	shown, _ := got.json.(map[string]any)
	if g, ok := shown["guid"].(string); ok {
		return g
	}
	list, listed := shown["resources"].([]any)
	if !listed {
		path, _, _ := strings.Cut(row.path, "?")
		list = w.ask("admin", "GET", path+"?order_by=-created_at&per_page=1", "", "").json.(map[string]any)["resources"].([]any)
	}
	if len(list) == 0 {
		t.Fatalf("line %d: made nothing", row.line)
	}
	return list[0].(map[string]any)["guid"].(string)
}

func (w *world) jobDone(t *testing.T, row *auditRow, path string) {
	t.Helper()
	for {
		job := w.ask("admin", "GET", path, "", "")
		switch state := job.json.(map[string]any)["state"]; state {
		case "COMPLETE":
			return
		case "FAILED":
			t.Fatalf("line %d: %s", row.line, job.text)
		}
	}
}

func (w *world) events(t *testing.T) (all []*cf.Event) {
	t.Helper()
	err := w.store.Read(t.Context(), func(tx *store.Tx) (err error) {
		all, err = store.Events.All(tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// eventLine writes an event as GET /v3/audit_events/{guid} shows it.
func (w *world) eventLine(e *cf.Event) string {
	shown := w.ask("admin", "GET", "/v3/audit_events/"+e.GUID, "", "").json.(map[string]any)
	part := func(name string) map[string]any { m, _ := shown[name].(map[string]any); return m }
	place := []string{}
	for _, name := range []string{"space", "organization"} {
		if g, ok := part(name)["guid"].(string); ok {
			place = append(place, g)
		}
	}
	actor, target := part("actor"), part("target")
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(shown["data"]) // of JSON
	return fmt.Sprintf("%s | %s %s %s | %s %s %s | %s | %s", shown["type"], actor["type"], actor["guid"], actor["name"],
		target["type"], target["guid"], target["name"], strings.Join(place, " "), strings.TrimSpace(data.String()))
}

var someGUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// compareEvents compares events with those of the table. A name there that stands for
// nothing yet stands from then on for the GUID that is met in its place.
func (w *world) compareEvents(t *testing.T, row *auditRow, got []string) {
	t.Helper()
	for i, want := range row.events {
		if i == len(got) {
			break
		}
		w.learn(w.fill(want), got[i])
		if want = w.fill(want); got[i] != want {
			t.Errorf("line %d: %s %s: event %d:\ngot  %s\nwant %s", row.line, row.method, row.path, i, got[i], want)
		}
	}
	if len(got) != len(row.events) {
		t.Errorf("line %d: %s %s: got %d events:\n%s\nwant %d", row.line, row.method, row.path, len(got), strings.Join(got, "\n"), len(row.events))
	}
}

// freeName matches a name that stands for nothing.
var freeName = regexp.MustCompile(`\{[a-z][a-z_0-9]*\}`)

// learn keeps what the names that stand for nothing match.
func (w *world) learn(want, got string) {
	names := freeName.FindAllString(want, -1)
	var pattern strings.Builder
	for _, part := range freeName.Split(want, -1) {
		if pattern.Len() > 0 {
			pattern.WriteString(`([^"| ]+)`)
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	m := regexp.MustCompile("^" + pattern.String() + "$").FindStringSubmatch(got)
	for i, name := range names {
		if m != nil {
			w.saved[strings.Trim(name, "{}")] = m[i+1]
		}
	}
}

// writeAuditTable writes the table with the events as they are.
func (w *world) writeAuditTable(t *testing.T, rows []auditRow) {
	t.Helper()
	names, n := map[string]string{}, 0
	for name, g := range w.saved {
		names[g] = "{" + name + "}"
	}
	var out strings.Builder
	for _, r := range rows {
		for _, c := range r.comment {
			fmt.Fprintln(&out, c)
		}
		switch {
		case r.elsewhere != "":
			fmt.Fprintf(&out, "elsewhere %s %s\n", r.elsewhere, r.why)
			continue
		case r.never != "":
			fmt.Fprintf(&out, "never %s %s\n", r.never, r.why)
			continue
		}
		if r.as != "admin" {
			fmt.Fprintf(&out, "%s:", r.as)
		}
		fmt.Fprint(&out, strings.TrimSpace(r.method+" "+r.path+" "+r.body))
		if r.save != "" {
			fmt.Fprintf(&out, " => %s", r.save)
		}
		fmt.Fprintln(&out)
		for _, e := range r.events {
			fmt.Fprintln(&out, "  "+withNames(e, names, &n))
		}
	}
	if err := os.WriteFile(auditTable, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withNames puts names in place of the GUIDs of an event.
func withNames(event string, names map[string]string, n *int) string {
	for g, name := range names {
		if strings.Contains(g, "://") {
			event = strings.ReplaceAll(event, g, name)
		}
	}
	return someGUID.ReplaceAllStringFunc(event, func(g string) string {
		if names[g] == "" {
			*n++
			names[g] = fmt.Sprintf("{g%d}", *n)
		}
		return names[g]
	})
}
