package loggregator

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cupola/runtime/cell"
	"cupola/runtime/lrp"
	"cupola/server/logcache"
	"cupola/server/logcache/history"
	"cupola/test/cputime"
)

// fleet is instances that use something, and requests that they get.
type fleet struct {
	*Stream
	all    []cell.Measured
	random *rand.Rand
	at     time.Time
}

func newFleet(tb testing.TB, instances int) *fleet {
	tb.Helper()
	f := &fleet{Stream: &Stream{Cache: logcache.New(logcache.Config{MaxMetricBytes: 1})}, random: rand.New(rand.NewPCG(1, 2)), at: time.Unix(1_800_014_400/43200*43200, 0)}
	h, err := history.Open(history.Config{Dir: tb.TempDir(), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return f.at }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = h.Close() })
	f.Cache.History = h
	for i := range instances {
		app := fmt.Sprintf("6f1c9a52-77e0-4b5c-9f0e-%012d", i/2)
		tags := CellTags()
		for _, name := range []string{"app_id", "source_id", "process_id"} {
			tags[name] = app
		}
		for _, name := range []string{"space_id", "organization_id"} {
			tags[name] = "0a4de3d1-53f5-4f2b-8a58-6f6a3c0d2b11"
		}
		tags["app_name"], tags["space_name"], tags["organization_name"] = fmt.Sprint("app-", i/2), "production", "example"
		tags["process_type"], tags["instance_id"], tags["process_instance_id"] = "web", fmt.Sprint(i%2), fmt.Sprintf("0f7c1e1e-1d7e-4f1c-6d1b-%04d", i)
		m := cell.Measured{Log: lrp.LogTarget{GUID: app, Instance: fmt.Sprint(i % 2), Tags: tags}, LogRateLimit: 16 << 10, EntitledCPU: 0.25}
		m.MemoryQuota, m.DiskQuota, m.MemoryBytes, m.DiskBytes = 256<<20, 512<<20, 80<<20, 5<<20
		f.all = append(f.all, m)
	}
	return f
}

// turn is 15 s of the life of a fleet: what an app that does little uses, with noise.
func (f *fleet) turn() {
	f.at = f.at.Add(measureInterval)
	now := f.at.Add(time.Duration(f.random.IntN(int(50 * time.Millisecond))))
	for i := range f.all {
		m := &f.all[i]
		busy := 0.002 + 0.02*f.random.Float64()
		m.CPU += time.Duration(busy * float64(measureInterval))
		m.CPUPercent, m.Entitlement, m.Uptime = busy*100, busy*4, m.Uptime+now.Sub(f.at)+measureInterval
		if f.random.IntN(3) == 0 {
			m.MemoryBytes += uint64(f.random.IntN(64)) << 12
			m.MemoryBytes -= min(uint64(f.random.IntN(64))<<12, m.MemoryBytes/2)
		}
		m.LogRate = uint64(f.random.IntN(4)) * 97
		f.gauge(*m, now)
	}
	for second := range 15 {
		for i := range f.all {
			if f.random.IntN(20) > 0 { // each instance has a request every 20 s
				continue
			}
			status := []int{200, 200, 200, 200, 404, 500}[f.random.IntN(6)]
			took := math.Exp(f.random.NormFloat64()) * 20e6
			f.served.count(&logcache.Envelope{SourceID: f.all[i].Log.GUID, InstanceID: f.all[i].Log.Instance, Kind: logcache.Timer, Tags: f.timers.of("GET", status), Metrics: []logcache.Metric{{Name: "http", Value: took}}})
		}
		f.recordRequests(f.at.Add(time.Duration(second) * time.Second))
	}
}

// What is counted of requests is in the history with the time at which it was so: also
// what a counter began with, and what it had when it was forgotten for an hour.
func TestRequestsInTheHistory(t *testing.T) {
	f := newFleet(t, 0)
	begin := f.at
	serve := func(status int, took time.Duration) {
		f.served.count(&logcache.Envelope{SourceID: "app", InstanceID: "1", Kind: logcache.Timer, Tags: f.timers.of("GET", status), Metrics: []logcache.Metric{{Name: "http", Value: float64(took)}}})
	}
	pass := func(seconds int) {
		for range seconds {
			f.at = f.at.Add(time.Second)
			f.recordRequests(f.at)
			if f.at.Unix()%15 == 0 {
				f.Cache.History.Write(f.at)
			}
		}
	}
	read := func(name, label, value string) string {
		t.Helper()
		found, err := f.Cache.History.Select(t.Context(), history.Query{Sources: map[string]bool{"app": true}, To: f.at.Unix(), MaxBytes: 1 << 20,
			Wanted: func(o *history.Origin, n string) bool { return n == name && o.Tags[label] == value }})
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: got %d series, %v", name, len(found), err)
		}
		var said []string
		was := math.NaN()
		for _, p := range found[0].Pieces {
			for it := p.Chunk.Iterator(nil); it.Next() != 0; {
				if at, v := it.At(); at > p.After && at <= p.Until && v != was {
					said, was = append(said, fmt.Sprintf("%d:%v", at-begin.Unix(), v)), v
				}
			}
		}
		return strings.Join(said, " ")
	}
	pass(100)
	serve(200, 30*time.Millisecond)
	serve(200, 3*time.Second)
	serve(503, time.Minute)
	pass(1)
	serve(200, time.Millisecond)
	pass(40)
	if got := read("http_requests_total", "status_code", "200"); got != "0:0 101:2 102:3" {
		t.Errorf("got %s", got)
	}
	if got := read("http_requests_total", "status_code", "503"); got != "0:0 101:1" {
		t.Errorf("got %s", got)
	}
	for _, tt := range []struct{ name, le, want string }{
		{"_bucket", "0.005", "0:0 116:1"}, {"_bucket", "0.05", "0:0 101:1 116:2"}, {"_bucket", "5", "0:0 101:2 116:3"}, {"_bucket", "+Inf", "0:0 101:3 116:4"}, {"_count", "", "0:0 101:3 116:4"},
	} {
		if got := read("http_request_duration_seconds"+tt.name, "le", tt.le); got != tt.want {
			t.Errorf("%s %s: got %s; want %s", tt.name, tt.le, got, tt.want)
		}
	}
	pass(2 * countedFor)
	if n := len(f.served.counts) + len(f.served.apps); n > 0 {
		t.Errorf("%d counters are kept", n)
	}
	serve(200, time.Millisecond)
	pass(15)
	if got := read("http_requests_total", "status_code", "200"); !strings.HasSuffix(got, ":0 7342:1") {
		t.Errorf("got %s", got)
	}
}

// BenchmarkHistory measures what the history of 250 instances costs: an operation is 15
// seconds, with requests to all. After more than 2,880 of them (-benchtime 3000x), which
// are 12 hours, there are blocks of all resolutions.
func BenchmarkHistory(b *testing.B) {
	var before, after runtime.MemStats
	f := newFleet(b, 250)
	runtime.GC()
	runtime.ReadMemStats(&before)
	var spent time.Duration
	for b.Loop() {
		spent += cputime.Of(func() {
			f.turn()
			f.Cache.History.Write(f.at)
		})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(spent)/float64(measureInterval)/float64(b.N)*100, "%core")
	b.ReportMetric(float64(after.HeapAlloc)/(1<<20)-float64(before.HeapAlloc)/(1<<20), "MiB-heap")
	names, _ := filepath.Glob(filepath.Join(f.Cache.History.Dir, "*"))
	sizes := map[string]int64{}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			level, suffix := filepath.Base(name)[:1], filepath.Ext(name)
			sizes[level+suffix] += info.Size()
			sizes[level+suffix+"s"]++
		}
	}
	for kind, n := range sizes {
		if !strings.HasSuffix(kind, "s") {
			b.ReportMetric(float64(n)/float64(sizes[kind+"s"])/1024, "KiB/"+kind)
		}
	}
	runtime.KeepAlive(f)
}

// An app that answers with every status from many instances does not take the memory of all.
func TestCountersOfAnAppAreBounded(t *testing.T) {
	var r requests
	for n := range 2 * maxCounters {
		tags := map[string]string{"method": "GET", "status_code": "200"}
		for _, app := range []string{"many", "one"} {
			instance := "0"
			if app == "many" {
				instance = fmt.Sprint(n)
			}
			r.count(&logcache.Envelope{SourceID: app, InstanceID: instance, Tags: tags, Metrics: []logcache.Metric{{Value: 1}}})
		}
	}
	if n := len(r.counts); n != maxCounters+1 {
		t.Errorf("there are %d counters; want %d, and one of the other app", n, maxCounters)
	}
	if n := r.apps["many"].value; n != 2*maxCounters {
		t.Errorf("the histogram has %v requests; want %d", n, 2*maxCounters)
	}
	for now := range 2 * int64(countedFor) {
		if now%measuredSeconds == 0 {
			r.record(now)
		}
	}
	if n := len(r.counts) + len(r.apps); n != 0 {
		t.Errorf("%d counters are kept", n)
	}
}
