package logcache

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// archived is a small cache whose older lines go to an archive.
func archived(t testing.TB, dir string) *Cache {
	return onDisk(t, dir+"/logs", Config{MaxPerSource: 10, MaxBytes: 80_000, Archive: ArchiveConfig{Dir: dir + "/archive", MaxBytes: 1 << 30, MaxAge: math.MaxInt64}})
}

// searched are the lines that a search finds, page by page.
func searched(t testing.TB, c *Cache, q Search) (all []string) {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 7
	}
	for range 1000 {
		found, next, err := c.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			all = append(all, string(e.Payload))
		}
		if next.IsZero() {
			return all
		}
		q.End = next
	}
	t.Fatal("the search does not end")
	return nil
}

// TestArchiveLimitsChange takes away the room of old lines: what the cache itself holds stays.
func TestArchiveLimitsChange(t *testing.T) {
	c := archived(t, t.TempDir())
	for n := range 200 {
		c.Append(tagged(line("a", int64(n), fmt.Sprint("line ", n)), "APP/PROC/WEB", false))
	}
	if got := searched(t, c, Search{SourceID: "a"}); len(got) != 200 {
		t.Fatalf("got %d lines; want all", len(got))
	}
	c.SetArchiveLimits(1, time.Hour)
	got := searched(t, c, Search{SourceID: "a"})
	if len(got) < 10 || len(got) >= 200 || got[0] != "line 199" {
		t.Errorf("got %d lines, the first %q; want the newest alone", len(got), got[0])
	}
	New(Config{}).SetArchiveLimits(1, time.Hour) // it has no archive
}

// TestNoLineIsLost writes more lines than the cache holds, with daemons that are killed in between: a search finds all of them,
// each once.
func TestNoLineIsLost(t *testing.T) {
	dir := t.TempDir()
	c := archived(t, dir)
	var want []string
	for n := range 500 {
		text := fmt.Sprint("line ", n)
		c.Append(tagged(line("a", int64(n), text), "APP/PROC/WEB", n%3 == 0))
		c.Append(tagged(line(fmt.Sprint("b", n%20), int64(n), strings.Repeat("x", 3000)), "APP/PROC/WEB", false)) // they push sources out of memory
		want = append(want, text)
		if n%130 == 0 {
			c = archived(t, dir)
		}
	}
	slices.Reverse(want)
	for range 2 {
		if got := searched(t, c, Search{SourceID: "a"}); !slices.Equal(got, want) {
			t.Errorf("got %d lines: %q; want %d", len(got), got, len(want))
		}
		if got := searched(t, c, Search{SourceID: "a", Text: "LINE 77", FoldCase: true, Limit: 1}); !slices.Equal(got, []string{"line 77"}) {
			t.Errorf("got %q", got)
		}
		c = archived(t, dir)
	}
	c.Delete("a")
	if got := searched(t, c, Search{SourceID: "a"}); len(got) != 0 {
		t.Errorf("got %q of a source that was deleted", got)
	}
}

func TestSearches(t *testing.T) {
	c := archived(t, t.TempDir())
	for n, l := range []struct {
		text, source, instance string
		stderr                 bool
	}{
		{"GET /", "RTR", "0", false}, {`{"level":"error","msg":"no database"}`, "APP/PROC/WEB", "1", true}, {"[WARN] slow", "APP/PROC/WEB", "0", false}, {"level=info ready", "APP/TASK/X", "0", false}, {"Größe 5", "APP/PROC/WEB", "2", false},
	} {
		e := tagged(line("a", int64(n), l.text), l.source, l.stderr)
		e.InstanceID = l.instance
		c.Append(e)
	}
	for name, s := range map[string]struct {
		q    Search
		want string
	}{
		"all":        {Search{}, "Größe 5|level=info ready|[WARN] slow|" + `{"level":"error","msg":"no database"}` + "|GET /"},
		"text":       {Search{Text: "slow"}, "[WARN] slow"},
		"case":       {Search{Text: "SLOW"}, ""},
		"no case":    {Search{Text: "GRÖSSE", FoldCase: true}, ""},
		"umlaut":     {Search{Text: "GRÖß", FoldCase: true}, "Größe 5"},
		"pattern":    {Search{Pattern: regexp.MustCompile(`^\w+ /$`)}, "GET /"},
		"level":      {Search{Level: Warn}, "[WARN] slow|" + `{"level":"error","msg":"no database"}`},
		"instance":   {Search{InstanceID: "1"}, `{"level":"error","msg":"no database"}`},
		"stderr":     {Search{Stderr: true}, `{"level":"error","msg":"no database"}`},
		"source":     {Search{SourceType: "APP/TASK"}, "level=info ready"},
		"span":       {Search{Start: time.Unix(0, 1), End: time.Unix(0, 3)}, "[WARN] slow|" + `{"level":"error","msg":"no database"}`},
		"everything": {Search{Text: "slow", Level: Warn, InstanceID: "0", SourceType: "APP", Pattern: regexp.MustCompile("s.ow")}, "[WARN] slow"},
	} {
		s.q.SourceID = "a"
		if got := strings.Join(searched(t, c, s.q), "|"); got != s.want {
			t.Errorf("%s: got %q; want %q", name, got, s.want)
		}
	}
}

func TestLevels(t *testing.T) {
	for text, want := range map[string]Level{
		"": NoLevel, "hello": NoLevel, "an error occurred": NoLevel, "ERROR: no": Error, "2026-11-28 10:00:00 WARNING x": Warn, `{"time":1,"level":50,"msg":"x"}`: Error, `{"level":30}`: Info,
		`{"severity":"NOTICE"}`: Info, "lvl=dbug level=debug": Debug, "ts=1 level=warn msg=ERROR": Warn, "FATAL": Error, strings.Repeat(".", 200) + " ERROR": NoLevel, "level: fatal": Error, "level=50000": NoLevel,
	} {
		if got := levelOf([]byte(text)); got != want {
			t.Errorf("%q: got %d; want %d", text, got, want)
		}
	}
}

// TestSearchByHTTP holds the API's form, its paging and its errors.
func TestSearchByHTTP(t *testing.T) {
	c := archived(t, t.TempDir())
	for n := range 50 {
		c.Append(tagged(line("a", int64(n+1), fmt.Sprint("line ", n)), "APP/PROC/WEB", false))
	}
	h := c.Handler(func(_ *http.Request, ids ...string) (map[string]bool, error) { return map[string]bool{"a": true}, nil })
	get := func(path string) (int, string) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/search/"+path, nil))
		return rec.Code, strings.TrimSpace(rec.Body.String())
	}
	for path, want := range map[string]string{
		"b":                                   "404 ",
		"a?text=line+7":                       `200 {"envelopes":{"batch":[{"timestamp":"8","source_id":"a","instance_id":"0","tags":{"app_name":"täg","source_type":"APP/PROC/WEB"},"log":{"payload":"bGluZSA3","type":"OUT"}}]}}`,
		"a?text=none":                         `200 {"envelopes":{"batch":[]}}`,
		"a?level=x":                           `400 {"code":3,"message":"level must be debug, info, warn or error, not \"x\"","details":[]}`,
		"a?pattern=(":                         "400 {\"code\":3,\"message\":\"pattern must be a valid regular expression: error parsing regexp: missing closing ): `(`\",\"details\":[]}",
		"a?stderr=x":                          `400 {"code":3,"message":"parsing field \"stderr\": \"x\" is not a boolean","details":[]}`,
		"a?limit=1001":                        `400 {"code":3,"message":"limit (1001) must be 1000 or less","details":[]}`,
		"a?start_time=x":                      `400 {"code":3,"message":"parsing field \"start_time\": \"x\" is not a 64-bit integer","details":[]}`,
		"a?text=" + strings.Repeat("x", 2000): `400 {"code":3,"message":"text has 2000 bytes: 1024 are allowed","details":[]}`,
	} {
		if status, body := get(path); fmt.Sprint(status, " ", body) != want {
			t.Errorf("%.40s: got %d %s; want %s", path, status, body, want)
		}
	}
	if _, body := get("a?limit=2"); !strings.HasSuffix(body, `"next_end_time":"49"}`) {
		t.Errorf("got %s", body)
	}
}

// BenchmarkSearchGigabyte searches 1 GiB of lines for a word that one of them has, and for one that none has.
func BenchmarkSearchGigabyte(b *testing.B) {
	dir := b.TempDir()
	c := onDisk(b, dir+"/logs", Config{Archive: ArchiveConfig{Dir: dir + "/archive", MaxBytes: 1 << 30, MaxAge: math.MaxInt64}})
	rnd := rand.New(rand.NewPCG(1, 2))
	for n, size := int64(0), 0; size < 1<<30; n++ {
		text := fmt.Sprintf(`%x level=info msg="request done" method=GET path=/orders/%d user=%x status=200 took=%dms`, n, rnd.IntN(1e6), rnd.Uint64(), rnd.IntN(300))
		if n == 4_000_000 {
			text += " kumquat"
		}
		size += len(text)
		c.Append(tagged(line("a", n, text), "APP/PROC/WEB", false))
	}
	for name, q := range map[string]Search{"word": {Text: "kumquat"}, "none": {Text: "pomelo"}} {
		b.Run(name, func(b *testing.B) {
			q.SourceID, q.Limit = "a", 100
			for b.Loop() {
				if found, next, err := c.Search(b.Context(), q); err != nil || !next.IsZero() || len(found) != strings.Count(q.Text, "kumquat") {
					b.Fatalf("got %d lines, %v, %v", len(found), next, err)
				}
			}
		})
	}
}
