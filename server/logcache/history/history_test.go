package history

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clock is the time of a store, in seconds.
type clock struct{ at int64 }

func (c *clock) now() time.Time { return time.Unix(c.at, 0) }

// midnight is a time at which windows of all levels begin.
const midnight = 1_800_014_400 / 43200 * 43200

func opened(t testing.TB, dir string, c *clock, change ...func(*Config)) (*Store, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	cfg := Config{Dir: dir, Now: c.now, Log: slog.New(slog.NewTextHandler(&said, nil))}
	for _, f := range change {
		f(&cfg)
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, &said
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

// web is an instance of an app.
func web(source string, index int) Origin {
	return Origin{source, fmt.Sprint(index), map[string]string{"app_id": source, "process_type": "web", "process_instance_id": fmt.Sprint(source, "-", index)}}
}

// sampled is a sample as it is read.
type sampled struct {
	at    int64
	value float64
}

// read is a series of a source by its name, as a query gets it.
func read(t testing.TB, s *Store, q Query, source, name string) (all []sampled) {
	t.Helper()
	q.Sources, q.MaxBytes = map[string]bool{source: true}, 1<<30
	q.Wanted = func(_ *Origin, n string) bool { return n == name }
	if q.To == 0 {
		q.To = math.MaxInt64
	}
	found, err := s.Select(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 1 {
		t.Fatalf("got %d series; want one", len(found))
	}
	for _, m := range found {
		for _, p := range m.Pieces {
			it := p.Chunk.Iterator(nil)
			for it.Next() != 0 {
				if at, v := it.At(); at > p.After && at <= p.Until {
					all = append(all, sampled{at, v})
				}
			}
		}
	}
	if !slices.IsSortedFunc(all, func(a, b sampled) int { return int(a.at - b.at) }) {
		t.Fatalf("the samples of %s are not in order", name)
	}
	return all
}

// live appends a sample of cpu (n) and one of a counter (2n) every 15 s, and calls the
// writer as often as every says.
func live(s *Store, c *clock, n int, every int) {
	for i := range n {
		c.at += 15
		v := float64(c.at - midnight)
		s.Append(web("a", 0), c.now(), Point{"cpu", Peak, v / 15}, Point{"age", Last, v})
		s.Append(web("a", 0), c.now(), Point{"requests", Fast, v * 2})
		if i%every == every-1 {
			s.Write(c.now())
		}
	}
}

// wantEvery fails unless there is a sample of every step in a time, with the value that
// a function says.
func wantEvery(t *testing.T, got []sampled, after, until, step int64, value func(at int64) float64) {
	t.Helper()
	got = slices.DeleteFunc(slices.Clone(got), func(s sampled) bool { return s.at <= after || s.at > until })
	for at := after/step*step + step; at <= until; at += step {
		if len(got) == 0 || got[0].at != at || got[0].value != value(at) {
			t.Fatalf("got %v at %d s; want %v", got[:min(len(got), 2)], at-midnight, sampled{at, value(at)})
		}
		got = got[1:]
	}
	if len(got) > 0 {
		t.Fatalf("got %d further samples, the first is %v", len(got), got[0])
	}
}

// coarse is until when 5-minute samples are read though there are finer ones.
func coarse(now int64) int64 { return (now - 310) / 300 * 300 }

// What was measured and written is there after a kill at any time, of all resolutions;
// samples go on behind it.
func TestMetricsOutliveKills(t *testing.T) {
	dir, c := memory(t), &clock{midnight}
	s, _ := opened(t, dir, c)
	lives := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		live(s, c, 1+lives.IntN(300), 1)
		s, _ = opened(t, dir, c) // the one before is as if it were killed
	}
	if c.at < midnight+86400 {
		t.Fatal("too short")
	}
	mean := func(step int64) func(int64) float64 {
		return func(at int64) float64 { return rounded(float64(at-midnight)/15 - float64(step/15-1)/2) }
	}
	l := s.levels[1].begins()
	got := read(t, s, Query{}, "a", "cpu")
	wantEvery(t, got, l, c.at, 15, mean(15))
	got = read(t, s, Query{Step: 5 * time.Minute}, "a", "cpu")
	wantEvery(t, got, midnight, coarse(c.at), 300, mean(300))
	got = read(t, s, Query{Step: 5 * time.Minute}, "a", "age")
	wantEvery(t, got, midnight, coarse(c.at), 300, func(at int64) float64 { return float64(at - midnight) })
	got = read(t, s, Query{}, "a", "requests")
	wantEvery(t, got, max(l, midnight), c.at, 15, func(at int64) float64 { return 2 * float64(at-midnight) })
	got = read(t, s, Query{Range: time.Hour, Coarse: true, Maxima: true}, "a", "cpu")
	wantEvery(t, got, midnight, coarse(c.at), 300, func(at int64) float64 { return float64(at-midnight) / 15 })
}

// A range over all resolutions is one line, without gaps and without doubles.
func TestRangeOverAllResolutions(t *testing.T) {
	c := &clock{midnight}
	s, _ := opened(t, memory(t), c)
	for range 30 * 86400 / 15 {
		c.at += 15
		s.Append(web("a", 0), c.now(), Point{"age", Last, float64(c.at - midnight)})
		if c.at%3600 == 15 {
			s.Write(c.now())
		}
	}
	live(s, c, 86400/15, 100)
	if got := s.levels[1].begins(); got < c.at-2*86400-2*3600 || got > c.at-2*86400 {
		t.Errorf("15 s begins %v ago", time.Duration(c.at-got)*time.Second)
	}
	if got := s.levels[0].begins(); got < c.at-2*3600-1800 || got > c.at-2*3600 {
		t.Errorf("1 s begins %v ago", time.Duration(c.at-got)*time.Second)
	}
	got := read(t, s, Query{}, "a", "age")
	if first := got[0].at; first < c.at-30*86400-43200 || first > c.at-30*86400 {
		t.Errorf("the first is %v ago", time.Duration(c.at-first)*time.Second)
	}
	value := func(at int64) float64 { return float64(at - midnight) }
	fine := s.levels[1].begins()
	wantEvery(t, got, got[0].at-300, fine, 300, value)
	wantEvery(t, got, fine, c.at, 15, value)
	wantEvery(t, read(t, s, Query{}, "a", "requests"), c.at-86400, c.at, 15, func(at int64) float64 { return 2 * value(at) })
	if files, _ := os.ReadDir(s.Dir); len(files) > 130 {
		t.Errorf("got %d files", len(files))
	}
}

// What a counter had before it began again is in every resolution.
func TestCounterBeginsAgain(t *testing.T) {
	c := &clock{midnight}
	s, _ := opened(t, memory(t), c)
	grown, value := 0.0, 0.0
	for i := range 1000 {
		c.at += 15
		if i%33 == 7 {
			value = 0
		} else {
			value, grown = value+1, grown+1
		}
		s.Append(web("a", 0), c.now(), Point{"requests", Fast, value})
	}
	for _, step := range []time.Duration{0, 15 * time.Second, 5 * time.Minute} {
		got, before := 0.0, 0.0
		for _, m := range read(t, s, Query{Step: step}, "a", "requests") {
			if got += m.value; m.value >= before {
				got -= before
			}
			before = m.value
		}
		if got != grown {
			t.Errorf("every %v: it grew by %v; want %v", step, got, grown)
		}
	}
}

// A torn tail, whatever is in it, costs what was in it alone.
func TestTornJournal(t *testing.T) {
	dir, c := memory(t), &clock{midnight}
	s, _ := opened(t, dir, c)
	live(s, c, 20, 1)
	path := s.levels[1].path(dir, midnight+3600, journalSuffix)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, s, Query{}, "a", "cpu")
	for cut := range whole {
		if err := os.WriteFile(path, append(whole[:cut:cut], "torn"...), 0o600); err != nil {
			t.Fatal(err)
		}
		again, said := opened(t, dir, c)
		got := read(t, again, Query{}, "a", "cpu")
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || said.Len() > 0 {
			t.Fatalf("cut at %d: got %v, and the log says %s", cut, got, said)
		}
		c.at += 15
		again.Append(web("a", 0), c.now(), Point{"cpu", Peak, -1})
		again.Write(c.now())
		again, _ = opened(t, dir, c)
		if further := read(t, again, Query{}, "a", "cpu"); !slices.Equal(further, append(got, sampled{c.at, -1})) {
			t.Fatalf("cut at %d: got %v after %v and a further sample", cut, further, got)
		}
		c.at -= 15
	}
}

// While the disk does not take them, metrics are in memory; the log says it once.
func TestDiskFailure(t *testing.T) {
	dir, c := filepath.Join(t.TempDir(), "metrics"), &clock{midnight}
	s, said := opened(t, dir, c)
	live(s, c, 10, 1)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	live(s, c, 500, 1)
	if got := strings.Count(said.String(), "until the disk takes them"); got != 1 {
		t.Errorf("the log says it %d times: %s", got, said)
	}
	before := read(t, s, Query{}, "a", "cpu")
	wantEvery(t, before, midnight, c.at, 15, func(at int64) float64 { return float64(at-midnight) / 15 })
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	live(s, c, 60, 1)
	if !strings.Contains(said.String(), "again") {
		t.Errorf("the log says %s", said)
	}
	s, _ = opened(t, dir, c)
	got := read(t, s, Query{}, "a", "cpu")
	wantEvery(t, got, midnight, midnight+2*3600, 15, func(at int64) float64 { return float64(at-midnight) / 15 }) // windows that were over
	wantEvery(t, got, c.at-10*15, c.at, 15, func(at int64) float64 { return float64(at-midnight) / 15 })
}

// Nothing of a deleted app is left in memory or in any file.
func TestDelete(t *testing.T) {
	dir, c := memory(t), &clock{midnight}
	s, _ := opened(t, dir, c)
	for range 2 * 240 {
		c.at += 15
		for _, source := range []string{"stays", "goes"} {
			s.Append(web(source, 0), c.now(), Point{"cpu", Peak, 1}, Point{"secret-of-" + source, Last, float64(c.at)})
		}
		s.Write(c.now())
	}
	s.Delete("goes")
	s.Write(c.now())
	if got := s.Sources(); got["goes"] || !got["stays"] {
		t.Errorf("got %v", got)
	}
	for range 2 {
		if got := read(t, s, Query{}, "goes", "cpu"); len(got) > 0 {
			t.Errorf("got %d samples of it", len(got))
		}
		if got := read(t, s, Query{}, "stays", "cpu"); len(got) != 480 {
			t.Errorf("got %d samples of the other one; want 480", len(got))
		}
		s, _ = opened(t, dir, c)
	}
	for range 13 * 3600 / 15 { // the journals go with their windows
		c.at += 15
		s.Append(web("stays", 0), c.now(), Point{"cpu", Peak, 1})
	}
	s.Write(c.now())
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil || bytes.Contains(content, []byte("secret-of-goes")) {
			t.Errorf("%s has something of it, %v", f.Name(), err)
		}
	}
}

// The files keep their bound, and the oldest blocks go.
func TestBounds(t *testing.T) {
	dir, c := memory(t), &clock{midnight}
	const most = 256 << 10
	s, said := opened(t, dir, c, func(cfg *Config) { cfg.MaxBytes, cfg.MaxSeries = most, 80 })
	random := rand.New(rand.NewPCG(1, 2))
	for range 3 * 86400 / 15 {
		c.at += 15
		for i := range 20 {
			s.Append(web("greedy", i), c.now(), Point{"cpu", Last, random.Float64()})
		}
		s.Append(web("modest", 0), c.now(), Point{"cpu", Last, 1})
		if c.at%900 == 0 {
			s.Write(c.now())
		}
	}
	s.Write(c.now().Add(time.Minute))
	var size int64
	for k := range s.levels {
		for _, b := range s.list(&s.levels[k], blockSuffix) {
			size += b.size
		}
	}
	if size > most || size < most/3 {
		t.Errorf("got %d bytes; want at most %d", size, most)
	}
	if got := s.count["greedy"]; got != 10 {
		t.Errorf("one app has %d series of 80; want an eighth", got)
	}
	if got := read(t, s, Query{From: c.at - 3600}, "modest", "cpu"); len(got) < 240 {
		t.Errorf("got %d samples of the other one", len(got))
	}
	if got := strings.Count(said.String(), "too many series"); got != 1 {
		t.Errorf("the log says it %d times: %s", got, said)
	}
}

// A clock that was a year ahead costs what was measured in that year.
func TestClockSetBack(t *testing.T) {
	dir, c := memory(t), &clock{midnight}
	s, _ := opened(t, dir, c)
	live(s, c, 100, 1)
	c.at += 365 * 86400
	live(s, c, 500, 1)
	c.at = midnight + 2*86400
	s.Write(c.now())
	live(s, c, 100, 1)
	for range 2 {
		got := read(t, s, Query{}, "a", "cpu")
		wantEvery(t, got, midnight+2*86400, c.at, 15, func(at int64) float64 { return float64(at-midnight) / 15 })
		s, _ = opened(t, dir, c)
	}
}

// A clock that is set back to where there are blocks writes them again, and queries read what there is then.
func TestClockSetBackIntoBlocks(t *testing.T) {
	c := &clock{midnight}
	s, _ := opened(t, memory(t), c)
	live(s, c, 1000, 1)
	c.at -= 3 * 3600
	s.Write(c.now())
	live(s, c, 600, 1)
	got := read(t, s, Query{}, "a", "cpu")
	wantEvery(t, got, c.at-3600, c.at, 15, func(at int64) float64 { return float64(at-midnight) / 15 })
}

// A query ends when it is cancelled, and does not read more than it may.
func TestQueryBounds(t *testing.T) {
	c := &clock{midnight}
	s, _ := opened(t, t.TempDir(), c)
	live(s, c, 1000, 10)
	q := Query{Sources: map[string]bool{"a": true}, To: math.MaxInt64, Wanted: func(*Origin, string) bool { return true }, MaxBytes: 100}
	if _, err := s.Select(t.Context(), q); err != ErrTooMuch {
		t.Errorf("got %v; want %v", err, ErrTooMuch)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q.MaxBytes = 1 << 20
	if _, err := s.Select(ctx, q); err != context.Canceled {
		t.Errorf("got %v; want %v", err, context.Canceled)
	}
}

// Everything may be called at once.
func TestConcurrentUse(t *testing.T) {
	s, _ := opened(t, memory(t), &clock{midnight})
	s.Now = time.Now
	var at atomic.Int64
	at.Store(midnight)
	calls := []func(n int){
		func(n int) {
			s.Append(web("a", n%7), time.Unix(at.Add(40), 0), Point{"cpu", Peak, float64(n)}, Point{"requests", Fast, float64(n)})
		},
		func(n int) { s.Append(web("b", n%7), time.Unix(at.Add(40), 0), Point{"cpu", Peak, float64(n)}) },
		func(int) { s.Write(time.Unix(at.Load(), 0)) },
		func(n int) {
			if n%50 == 0 {
				s.Delete("b")
			}
			s.Sources()
		},
		func(int) {
			_, err := s.Select(t.Context(), Query{Sources: map[string]bool{"a": true, "b": true}, To: math.MaxInt64, MaxBytes: 1 << 30, Wanted: func(*Origin, string) bool { return true }})
			if err != nil {
				t.Error(err)
			}
		},
	}
	var group sync.WaitGroup
	for _, call := range calls {
		group.Go(func() {
			for n := range 300 {
				call(n)
			}
		})
	}
	group.Wait()
}
