package query

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"cupola/server/logcache"
	"cupola/server/logcache/history"
)

// past is a cache whose history has days of an instance's life, and its time.
type past struct {
	*logcache.Cache
	at int64
}

// memory is a directory that takes no time to sync, where there is one.
func memory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "history")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func newPast(t testing.TB) *past {
	t.Helper()
	p := &past{Cache: logcache.New(logcache.Config{}), at: 1_800_014_400 / 43200 * 43200}
	h, err := history.Open(history.Config{Dir: memory(t), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(p.at, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	p.History = h
	t.Cleanup(func() { _ = h.Close() })
	return p
}

func (p *past) append(kind history.Kind, name string, value float64) {
	if now := time.Unix(p.at, 0); p.at%600 < 15 { // its writer runs
		p.History.Write(now)
	}
	p.History.Append(history.Origin{Source: "a", Instance: "0", Tags: map[string]string{"process_type": "web", "no-label": "x"}}, time.Unix(p.at, 0), history.Point{Name: name, Kind: kind, Value: value})
}

// line asks for one series over a time, and returns its values by their times.
func (p *past) line(t *testing.T, query string, start, end, step int64) map[int64]float64 {
	t.Helper()
	status, body, _ := strings.Cut(ask(p.Cache, "query_range", "query", query, "start", fmt.Sprint(start), "end", fmt.Sprint(end), "step", fmt.Sprint(step)), " ")
	var got struct {
		Data struct {
			Result []struct{ Values [][2]any }
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != "200" || len(got.Data.Result) != 1 {
		t.Fatalf("%s: got %s %s", query, status, body[:min(len(body), 300)])
	}
	all := map[int64]float64{}
	for _, v := range got.Data.Result[0].Values {
		at, _ := v[0].(float64)
		text, _ := v[1].(string)
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		all[int64(at)] = n
	}
	return all
}

// A rate over any range of time is that of the requests there were, whatever resolution
// it is read from: it differs by what the true one changes in the range and a step of the
// resolution. Counters begin again now and then, as daemons are restarted.
func TestRateAtAllResolutions(t *testing.T) {
	p := newPast(t)
	random := rand.New(rand.NewPCG(1, 2))
	const slowest, swing, period = 1, 4, 6 * 3600
	truth := func(at float64) float64 { return slowest + swing + swing*math.Sin(2*math.Pi*at/period) }
	begin, value := p.at, 0.0
	resets, last := 0, p.at
	for p.at < begin+4*86400 {
		p.at += 1 + int64(random.IntN(5))
		if random.IntN(5000) == 0 {
			value = 0
			resets++
			p.append(history.Fast, "http_requests_total", 0)
			last = p.at
			continue
		}
		value += truth(float64(p.at+last)/2) * float64(p.at-last)
		last = p.at
		p.append(history.Fast, "http_requests_total", value)
	}
	if resets < 5 {
		t.Fatalf("got %d resets", resets)
	}
	for _, tt := range []struct{ window, step int64 }{{60, 600}, {300, 300}, {300, 3600}, {900, 1800}, {3600, 900}, {4 * 3600, 3600}} {
		line := p.line(t, fmt.Sprintf(`rate(http_requests_total{source_id="a"}[%ds])`, tt.window), begin+86400, p.at, tt.step)
		far := 0
		for at := begin + 86400; at <= p.at; at += tt.step {
			got, ok := line[at]
			if !ok {
				t.Fatalf("rate over %d s: none at %d s before the end", tt.window, p.at-at)
			}
			want, slack := truth(float64(at-tt.window/2)), swing*2*math.Pi/period*float64(tt.window/2+300)
			slack += want * 15 / float64(tt.window) // Prometheus extrapolates by up to a step
			if math.Abs(got-want) > slack {
				far++ // a reset costs what was counted since the last sample
			}
			if got < 0 || got > want+slack {
				t.Fatalf("rate over %d s at %d s before the end: got %v; want %v ± %v", tt.window, p.at-at, got, want, slack)
			}
		}
		if far > resets {
			t.Errorf("rate over %d s: %d of %d are more than %d resets explain", tt.window, far, len(line), resets)
		}
	}
}

// A gauge is one line over all resolutions: its means, and with max_over_time its maxima.
func TestGaugeOverAllResolutions(t *testing.T) {
	p := newPast(t)
	begin := p.at
	for p.at < begin+5*86400 {
		p.at += 15
		v := float64((p.at - begin) / 86400) // the day
		if p.at%3600 == 1800 {
			v = 100
		}
		p.append(history.Peak, "cpu", v)
	}
	for _, tt := range []struct {
		query     string
		low, more float64 // than the day has
	}{
		{`cpu{source_id="a"}`, 0, 100},
		{`avg_over_time(cpu{source_id="a"}[1m])`, 0, 100},
		{`avg_over_time(cpu{source_id="a"}[1d])`, 0, 2},
		{`max_over_time(cpu{source_id="a"}[65m])`, 100, 100},
		{`max_over_time(cpu{source_id="a"}[2h])`, 100, 100},
		{`sum(cpu{source_id="a",process_type="web"})`, 0, 100},
	} {
		line := p.line(t, tt.query, begin+86400, p.at, 60)
		for at := begin + 86400; at <= p.at; at += 60 {
			day := float64((at - begin) / 86400)
			if got, ok := line[at]; !ok || got < max(tt.low, day-1) || got > day+tt.more {
				t.Fatalf("%s: got %v, %v at %d s before the end", tt.query, got, ok, p.at-at)
			}
		}
	}
}

// Sources of a regular expression are those of the history, too.
func TestSourcesOfTheHistory(t *testing.T) {
	p := newPast(t)
	p.at += 15
	p.append(history.Last, "memory_quota", 64)
	got := ask(p.Cache, "query", "query", `memory_quota{source_id=~".+"}`, "time", fmt.Sprint(p.at+1))
	want := fmt.Sprintf(`200 {"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"memory_quota","instance_id":"0","process_type":"web","source_id":"a"},"value":[%d,"64"]}]}}`, p.at+1)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
