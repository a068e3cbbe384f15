package logcache

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// talked is a cache of a few sources that have written all kinds of envelopes, some of them late.
func talked(t *testing.T) *Cache {
	t.Helper()
	c := onDisk(t, t.TempDir(), Config{})
	began := time.Unix(1_800_000_000, 0)
	for n := range 200 {
		for _, source := range []string{"a", "b"} {
			at := began.Add(time.Duration(n) * time.Second)
			c.Append(Envelope{SourceID: source, Timestamp: at.Add(time.Duration(-n%7) * time.Second), InstanceID: fmt.Sprint(n % 2), Tags: appTags([]string{"APP/PROC/WEB", "RTR", "STG"}[n%3]), Payload: fmt.Appendf(nil, "line %d", n), Err: n%5 == 0})
			c.Append(gauge(source, at, n))
			c.Append(Envelope{SourceID: source, Timestamp: at, InstanceID: "0", Kind: Timer, Began: at.Add(-time.Millisecond), Tags: map[string]string{"method": "GET"}, Metrics: []Metric{{"http", "ns", float64(1e6 + n)}}})
			c.Append(Envelope{SourceID: source, Timestamp: at, Kind: Counter, Metrics: []Metric{{"requests", "", float64(n)}}})
		}
	}
	c.Append(line("b", 1, "")) // long before all others
	return c
}

// answers are what clients get of a cache.
func answers(c *Cache) map[string]string {
	all := map[string]string{}
	for _, path := range []string{"/api/v1/meta", "/api/v1/read/a?limit=1000", "/api/v1/read/b?limit=1000", "/api/v1/read/a", "/api/v1/read/a?descending=true", "/api/v1/read/b?descending=true&limit=7&envelope_types=LOG",
		"/api/v1/read/a?envelope_types=GAUGE&limit=1000&start_time=1800000050000000000&end_time=1800000070000000000", "/api/v1/read/b?envelope_types=TIMER&name_filter=http&limit=1000", "/api/v1/read/a?envelope_types=COUNTER&descending=true",
		"/api/v1/read/a?start_time=1800000190000000000&envelope_types=LOG", "/api/v1/search/a?text=line&limit=50"} {
		all[path] = get(c, path)
	}
	all["staged last"] = c.lastStaging("a").String()
	all["tagged"] = fmt.Sprint(c.Tagged("app_name", func(string) bool { return true }))
	all["sources"] = fmt.Sprint(c.Sources())
	return all
}

// Packing changes no answer, nor does what is written to a packed source.
func TestPackingChangesNoAnswer(t *testing.T) {
	packed, plain := talked(t), talked(t)
	compare := func(when string) {
		t.Helper()
		want := answers(plain)
		for path, got := range answers(packed) {
			if got != want[path] {
				t.Errorf("%s: %s is %.300s; want %.300s", when, path, got, want[path])
			}
		}
	}
	compare("as written")
	packed.Pack()
	compare("packed while the sources write")
	packed.Pack()
	if _, loose := packedBytes(packed); loose > 0 {
		t.Errorf("%d envelopes are in no chunk", loose)
	}
	compare("packed")
	for _, at := range []time.Duration{300 * time.Second, 100 * time.Second, 5 * time.Second, 300 * time.Second} {
		for _, c := range []*Cache{packed, plain} {
			e := line("a", 0, "later")
			e.Timestamp = time.Unix(1_800_000_000, 0).Add(at)
			c.Append(e)
			c.Append(gauge("b", e.Timestamp, 7))
		}
		compare(fmt.Sprint("written again at ", at))
	}
	packed.Pack()
	packed.Pack()
	compare("packed again")
}

// A packed cache drops the oldest as any other does.
func TestPackedSourcesAreBounded(t *testing.T) {
	cfg := Config{MaxPerSource: 150, MaxBytes: 200_000, MaxMetricBytes: 300_000}
	packed, plain := New(cfg), New(cfg)
	for n := range 900 {
		for _, c := range []*Cache{packed, plain} {
			c.Append(line(fmt.Sprint(n%3), int64(n), fmt.Sprintf("%0*d", n%500, n)))
			c.Append(gauge(fmt.Sprint(n%4), time.Unix(0, int64(n)), n))
		}
		if n%50 == 0 {
			packed.Pack()
			packed.Pack()
		}
	}
	if got, want := fmt.Sprint(packed.Meta()), fmt.Sprint(plain.Meta()); got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	for i := range packed.shelves {
		if got, want := packed.shelves[i].bytes, plain.shelves[i].bytes; got != want {
			t.Errorf("shelf %d counts %d bytes; want %d", i, got, want)
		}
	}
	for id := range plain.Meta() {
		q := Query{SourceID: id, Start: time.Unix(0, -1), Kinds: []Kind{Log, Gauge}}
		if got, want := texts(packed.Read(q)), texts(plain.Read(q)); got != want {
			t.Errorf("source %s has %s; want %s", id, got, want)
		}
	}
}

// What a restart reads is packed at once, and as it was.
func TestPackedAfterARestart(t *testing.T) {
	c := talked(t)
	want, path := answers(c), t.TempDir()+"/saved"
	c.Pack()
	if err := c.Save(path); err != nil {
		t.Fatal(err)
	}
	c.Close()
	again := onDisk(t, c.disk.dir, Config{})
	again.Load(path, slog.New(slog.DiscardHandler))
	if _, loose := packedBytes(again); loose > 0 {
		t.Errorf("%d envelopes are in no chunk", loose)
	}
	for path, got := range answers(again) {
		if got != want[path] {
			t.Errorf("%s is %.300s; want %.300s", path, got, want[path])
		}
	}
}

// Sources may be read, written and deleted while they are packed.
func TestPackedMeanwhile(t *testing.T) {
	c := onDisk(t, t.TempDir(), Config{})
	const lines = 400
	var running sync.WaitGroup
	for _, source := range []string{"a", "b", "gone"} {
		running.Go(func() {
			for n := range lines {
				c.Append(line(source, int64(n+1), "a line"))
				if source == "gone" && n%40 == 0 {
					c.Delete(source)
				}
			}
		})
		running.Go(func() {
			seen := 0
			for source != "gone" && seen < lines {
				got := c.Read(Query{SourceID: source})
				if len(got) < seen {
					t.Errorf("got %d lines of %s after %d", len(got), source, seen)
					return
				}
				seen = len(got)
				for i := range got {
					if got[i].Timestamp.UnixNano() != int64(i+1) || string(got[i].Payload) != "a line" || got[i].SourceID != source {
						t.Errorf("line %d of %s is %v", i, source, got[i])
						return
					}
				}
			}
		})
	}
	stop := make(chan struct{})
	var packing sync.WaitGroup
	packing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				c.Pack()
			}
		}
	})
	running.Wait()
	close(stop)
	packing.Wait()
}
