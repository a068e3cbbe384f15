package push

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/test/e2e"
)

var updateMistakes = flag.Bool("update", false, "write testdata/mistakes.txt")

// goldenMistakes is what users see of all mistakes, with what varies masked.
const goldenMistakes = "testdata/mistakes.txt"

// shown is how many lines must hold the cause and how to mend it.
const shown = 5

// said is what users see of one mistake.
type said struct {
	push    []string // the end of the push, from where it says why
	why     []string // cupola app why
	details string   // of the instance's stats: the end of cf push, and cf app
	event   string   // of the last crash: cf events
	build   string   // the error of the build: the end of cf push
}

// TestMistakes makes the mistakes that developers make, each with a real push, and wants the cause and how to mend it in the first
// five lines of all that says why. CI makes some of each kind, `make test-all` and -update make all.
func TestMistakes(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	var mistakes []mistake
	for _, kind := range kinds() {
		if !*updateMistakes {
			kind = e2e.Sample(t, kind, 3)
		}
		mistakes = append(mistakes, kind...)
	}
	var mu sync.Mutex
	all := map[string]string{}
	t.Run("push", func(t *testing.T) {
		for _, m := range mistakes {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(cmp.Or(m.needs, "python3")); err != nil {
					t.Skip(err)
				}
				got := m.make(d.On(t))
				m.judge(t, got)
				mu.Lock()
				defer mu.Unlock()
				all[m.name] = got.text()
			})
		}
	})
	compareMistakes(t, all)
}

// compareMistakes compares what was seen with the golden file. Mistakes that this machine cannot make are left out.
func compareMistakes(t *testing.T, all map[string]string) {
	t.Helper()
	if *updateMistakes && !t.Failed() {
		var text strings.Builder
		for _, m := range slices.Concat(kinds()...) {
			text.WriteString("## " + m.name + "\n" + all[m.name] + "\n")
		}
		if err := os.WriteFile(goldenMistakes, []byte(strings.TrimSuffix(text.String(), "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(goldenMistakes)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(string(golden), "## "), "\n## ") {
		name, want, _ := strings.Cut(part, "\n")
		if got, made := all[name]; made && strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// make makes the mistake.
func (m mistake) make(d *e2e.Daemon) (s said) {
	d.T.Helper()
	dir := d.T.TempDir()
	m.write(d.T, dir)
	space := "dev"
	if m.before != nil {
		space = m.before(d)
	}
	pushed, err := d.Run("push", "--space", space, dir)
	if (err == nil) != m.later {
		d.T.Fatalf("the push ended with %v:\n%s", err, pushed)
	}
	if m.later {
		e2e.Eventually(d.T, time.Minute, func() string {
			if n := len(crashes(d, m.name)); n < 3 { // from there on it waits
				return fmt.Sprintf("it has crashed %d times", n)
			}
			return ""
		})
	}
	s.push = reasons(pushed)
	if m.noApp {
		return s
	}
	s.details = details(d, m.name)
	if all := crashes(d, m.name); len(all) > 0 {
		s.event = all[len(all)-1].Data.Description
	}
	var builds struct{ Resources []struct{ Error string } }
	if d.API("GET", "/v3/apps/"+d.App(m.name)+"/builds?order_by=-created_at", nil, &builds); len(builds.Resources) > 0 {
		s.build = builds.Resources[0].Error
	}
	explained, err := d.Run("app", "why", "--space", space, m.name)
	if err != nil {
		d.T.Fatalf("app why: %v\n%s", err, explained)
	}
	s.why = reasons(explained)
	return s
}

// reasons are the lines of an output from where it says why, without what the app printed.
func reasons(output string) []string {
	var all []string
	for line := range strings.Lines(output) {
		all = append(all, strings.TrimSpace(line))
	}
	begins := slices.IndexFunc(all, func(l string) bool {
		return strings.HasPrefix(l, "Instance 0 crashed at") || strings.HasPrefix(l, "The last staging failed") || strings.HasPrefix(l, "cupola: ") || strings.HasPrefix(l, "The app ")
	})
	if begins < 0 {
		return nil
	}
	all = all[begins:]
	if output := slices.IndexFunc(all, func(l string) bool { return strings.HasPrefix(l, "The last lines of its output") }); output >= 0 {
		all = all[:output+1]
	}
	return slices.DeleteFunc(all, func(l string) bool { return l == "" })
}

// judge wants the cause and how to mend it wherever it can be.
func (m mistake) judge(t *testing.T, s said) {
	t.Helper()
	places := map[string][]string{"the push": s.push}
	if s.event != "" || s.build != "" {
		places["app why"] = s.why
	}
	if m.later {
		delete(places, "the push")
	}
	for place, lines := range places {
		text := strings.Join(lines[:min(len(lines), shown)], "\n")
		for what, want := range map[string]string{"cause": m.cause, "mend": m.mend} {
			if !strings.Contains(text, want) {
				t.Errorf("the first %d lines of %s have no %s %q:\n%s", shown, place, what, want, strings.Join(lines, "\n"))
			}
		}
	}
	if s.event != "" && !strings.Contains(s.details, m.cause) {
		t.Errorf("the details are %q; want %q", s.details, m.cause)
	}
}

// masks are what varies between runs and machines.
var masks = []struct {
	text *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\d\d:\d\d:\d\d UTC`), "TIME"},
	{regexp.MustCompile(`\b10(\.\d+){3}\b`), "ADDRESS"},
	// The last probe gets no answer in time where the machine is busy.
	{regexp.MustCompile(`(TCP connection to (ADDRESS:\d+): )timed out after [\d.]+ seconds`), "${1}dial tcp ${2}: connect: connection refused"},
	{regexp.MustCompile(`never healthy after [\d.]+s`), "never healthy after TIME"},
	{regexp.MustCompile(`\(\d+ attempts\)`), "(N attempts)"},
	{regexp.MustCompile(` in \d+ms`), " in TIME"},
	{regexp.MustCompile(`(peak was )\d+M`), "${1}PEAK"},
	{regexp.MustCompile(`Available versions: \[[^]]*\]`), "Available versions: [VERSIONS]"},
	{regexp.MustCompile(`mount [0-9a-f-]+: layers of \d+`), "mount GUID: layers of SIZE"},
	{regexp.MustCompile(`\b` + runtime.GOARCH + `\b`), "OURS"},
	{regexp.MustCompile(`\b(arm64|amd64)\b`), "OTHER"},
}

// text is for the golden file.
func (s said) text() string {
	text := "push:\n"
	for _, l := range s.push {
		text += "  " + l + "\n"
	}
	if s.why != nil {
		text += "cupola app why:\n"
		for _, l := range s.why {
			text += "  " + l + "\n"
		}
	}
	for _, l := range []struct{ name, text string }{{"details", s.details}, {"event", s.event}, {"build", s.build}} {
		if l.text != "" {
			text += l.name + ": " + l.text + "\n"
		}
	}
	for _, m := range masks {
		text = m.text.ReplaceAllString(text, m.by)
	}
	return text
}

// write writes the app: of its file the first word is the name, and a star after it makes it executable.
func (m mistake) write(t testing.TB, dir string) {
	t.Helper()
	text := "applications:\n- name: " + m.name + "\n"
	for line := range strings.Lines(m.manifest) {
		text += "  " + line
	}
	for _, line := range []string{"memory: 64M\n", "disk_quota: 64M\n"} {
		if key, _, _ := strings.Cut(line, ":"); !strings.Contains(m.manifest, key+":") {
			text += "  " + line
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	name, content, _ := strings.Cut(cmp.Or(m.file, "file of no use"), " ")
	if name == "none" {
		return
	}
	name, executable := strings.CutSuffix(name, "*")
	mode := os.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil { //nolint:gosec // one is to be executed
		t.Fatal(err)
	}
}

// details are those of an app's first instance.
func details(d *e2e.Daemon, app string) string {
	d.T.Helper()
	var stats struct{ Resources []struct{ Details string } }
	d.API("GET", "/v3/apps/"+d.App(app)+"/processes/web/stats", nil, &stats)
	if len(stats.Resources) == 0 {
		return ""
	}
	return stats.Resources[0].Details
}

// TestWhyOfAnAppThatRuns asks why of an app that has no reason.
func TestWhyOfAnAppThatRuns(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	d.PushProbe("why-runs")
	if said, err := d.Run("app", "why", "why-runs"); err != nil || !strings.HasPrefix(said, "All instances run.") {
		t.Errorf("got %v, %s", err, said)
	}
}

// space makes a space with a quota, and gives its name.
func space(d *e2e.Daemon, name string, quota e2e.Doc) string {
	d.T.Helper()
	var org, made struct{ GUID string }
	org.GUID = d.WaitFor("/v3/organizations?names=cupola")
	d.API("POST", "/v3/spaces", e2e.Doc{"name": name, "relationships": e2e.Doc{"organization": e2e.ToOne(org.GUID)}}, &made)
	quota["name"], quota["relationships"] = name, e2e.Doc{"organization": e2e.ToOne(org.GUID), "spaces": e2e.Doc{"data": []e2e.Doc{{"guid": made.GUID}}}}
	d.API("POST", "/v3/space_quotas", quota, nil)
	return name
}

// routeElsewhere makes a route in another space.
func routeElsewhere(d *e2e.Daemon, host string) {
	d.T.Helper()
	space := d.WaitFor("/v3/spaces?names=" + space(d, host, e2e.Doc{}))
	domain := d.WaitFor("/v3/domains?names=localhost")
	d.API("POST", "/v3/routes", e2e.Doc{"host": host, "relationships": e2e.Doc{"space": e2e.ToOne(space), "domain": e2e.ToOne(domain)}}, nil)
}

func quoted(command string) string { return fmt.Sprintf("command: %q\n", command) }
