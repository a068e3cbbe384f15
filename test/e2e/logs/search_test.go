package logs

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestSearchAfterKills has apps write lines all the while, and kills the daemon again and again: each line that a search found before is
// found after it, once and in order. With CUPOLA_TEST_ALL these are 20 apps, 1,000 lines a second in all, and 100 kills. `cupola logs search`
// finds a line, too.
func TestSearchAfterKills(t *testing.T) {
	t.Parallel()
	apps, kills := 4, 3
	if e2e.Thorough() {
		apps, kills = 20, 100
	}
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	dir := t.TempDir()
	program, err := os.ReadFile(e2e.Program(t, e2e.Repository(t), "./test/e2e/logs/testdata/teller"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "teller"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	for n := range apps {
		e2e.WriteManifest(t, dir, e2e.Doc{"name": fmt.Sprint("teller-", n), "memory": "32M", "disk_quota": "64M", "stack": "host", "buildpacks": []string{"binary_buildpack"},
			"no-route": true, "health-check-type": "process", "command": "./teller 50"})
		if out, err := d.Run("push", dir); err != nil {
			t.Fatalf("push: %v\n%s", err, out)
		}
	}
	for range kills {
		before := map[string][]string{}
		for n := range apps {
			app := fmt.Sprint("teller-", n)
			before[app] = searched(d, app, 1000)
		}
		d.Kill()
		d.Start()
		for app, want := range before {
			got := searched(d, app, 4000)
			if from := slices.Index(got, want[0]); from < 0 || len(got)-from < len(want) || !slices.Equal(got[from:from+len(want)], want) {
				t.Fatalf("%s: got\n%s\nwant among them\n%s", app, strings.Join(got, " "), strings.Join(want, " "))
			}
			if wrong := unordered(got); wrong != "" {
				t.Fatalf("%s: %s", app, wrong)
			}
		}
	}
	e2e.Eventually(t, time.Minute, func() string {
		out, err := d.Run("logs", "search", "teller-0", "line 7", "--pattern", "^line 7$", "--source", "APP")
		if err != nil || !strings.HasSuffix(strings.TrimSpace(out), "[APP/PROC/WEB/0] line 7") || strings.Count(out, "\n") != 1 {
			return fmt.Sprintf("got %q, %v; want one line", out, err)
		}
		return ""
	})
	if out, err := d.Run("logs", "search", "teller-0", "no such line"); err == nil || !strings.Contains(out, "no line was found") {
		t.Errorf("got %q, %v", out, err)
	}
}

// unordered says what is wrong with lines that are numbered, the newest first.
func unordered(lines []string) string {
	last := math.MaxInt
	for _, l := range lines {
		var n int
		if _, err := fmt.Sscanf(l, "line %d", &n); err != nil || n >= last {
			return fmt.Sprintf("%q comes before line %d", l, last)
		}
		last = n
	}
	return ""
}

// searched are the newest numbered lines of an app that a search finds, at least one and at most so many.
func searched(d *e2e.Daemon, app string, most int) (all []string) {
	d.T.Helper()
	query := url.Values{"source_type": {"APP/PROC"}, "text": {"line "}, "limit": {"1000"}}
	for len(all) < most {
		var page struct {
			Next      string `json:"next_end_time"`
			Envelopes struct {
				Batch []struct{ Log struct{ Payload string } }
			}
		}
		d.API("GET", "/api/v1/search/"+d.App(app)+"?"+query.Encode(), nil, &page)
		for _, e := range page.Envelopes.Batch {
			text, err := base64.StdEncoding.DecodeString(e.Log.Payload)
			if err != nil {
				d.T.Fatal(err)
			}
			all = append(all, string(text))
		}
		if page.Next == "" && len(all) > 0 {
			return all
		}
		query.Set("end_time", page.Next)
	}
	return all
}
