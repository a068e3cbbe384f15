package history

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// packNow packs all tracks as if all were quiet.
func packNow(s *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packQuiet(math.MaxInt64)
}

// awake lets a store pack no track for a minute.
func awake(s *Store, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeAll()
	s.rested = now
}

// selected is what queries get of a store.
func selected(t *testing.T, s *Store) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, q := range []Query{{}, {Step: 15 * time.Second}, {Step: 5 * time.Minute}, {Range: time.Hour, Coarse: true, Maxima: true}, {Names: true}} {
		q.Sources, q.To, q.MaxBytes = map[string]bool{"a": true, "b": true}, math.MaxInt64, 1<<30
		q.Wanted = func(*Origin, string) bool { return true }
		found, err := s.Select(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			key := fmt.Sprint(q.Step, q.Maxima, q.Names, m.Source, m.Instance, m.Tags, m.Name, m.Steady)
			for _, p := range m.Pieces {
				text := fmt.Sprint(p.Step, p.After, p.Until, ":")
				if p.Chunk != nil {
					for it := p.Chunk.Iterator(nil); it.Next() != 0; {
						at, v := it.At()
						text += fmt.Sprint(" ", at, "=", v)
					}
				}
				all[key] = append(all[key], text)
			}
		}
	}
	return all
}

// Whatever becomes quiet and when, queries, limits and the next daemon get what they would have without.
func TestQuietTracks(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random, c := rand.New(rand.NewPCG(seed, 2)), &clock{midnight}
			quiet, _ := opened(t, memory(t), c)
			plain, _ := opened(t, memory(t), c)
			awake(plain, c.at)
			each := func(f func(*Store)) { f(quiet); f(plain) }
			for n := range 150 {
				c.at += []int64{0, 1, 1, 5, 15, 15, 15, 20, 60, 310, 1000, 4000}[random.IntN(12)]
				source, index, value := []string{"a", "b"}[random.IntN(2)], random.IntN(2), float64(random.IntN(100))
				each(func(s *Store) {
					s.Append(web(source, index), c.now(), Point{"cpu", Peak, value}, Point{"age", Last, float64(c.at)}, Point{"rate", Mean, value}, Point{"total", Counter, value})
					s.Append(web(source, index), c.now(), Point{"requests", Fast, float64(n)})
				})
				switch random.IntN(40) {
				case 0:
					each(func(s *Store) { s.Delete(source) })
				case 1:
					c.at += 13 * 3600
				case 2:
					each(func(s *Store) { s.Write(c.now()) })
					quiet, _ = opened(t, quiet.Dir, c) // the one before is as if it were killed
					plain, _ = opened(t, plain.Dir, c)
				case 3:
					c.at = max(midnight, c.at-10*86400)
				}
				awake(plain, c.at)
				if random.IntN(2) == 0 {
					packNow(quiet)
				}
				if random.IntN(3) > 0 {
					each(func(s *Store) { s.Write(c.now()) })
				}
				each(func(s *Store) { s.tickLocked(c.now()) }) // forgets what is idle
				if d := cmp.Diff(selected(t, plain), selected(t, quiet)); d != "" {
					t.Fatalf("after %d samples (-want +got):\n%s", n+1, d)
				}
				if quiet.series != plain.series || !maps.Equal(quiet.count, plain.count) || !maps.Equal(quiet.Sources(), plain.Sources()) {
					t.Fatalf("after %d samples: got %d series, %v; want %d, %v", n+1, quiet.series, quiet.count, plain.series, plain.count)
				}
			}
			if len(plain.quiet) > 0 {
				t.Errorf("the store to compare with has %d quiet tracks", len(plain.quiet))
			}
		})
	}
}

// A track becomes quiet after a minute without samples, and takes little until the next one.
func TestTracksBecomeQuiet(t *testing.T) {
	c := &clock{midnight}
	s, _ := opened(t, memory(t), c)
	names := []string{"cpu", "memory", "memory_quota", "disk", "disk_quota", "cpu_entitlement", "absolute_usage", "log_rate"}
	write := func() {
		var points []Point
		for i, name := range names {
			points = append(points, Point{name, Peak, float64(i) + float64(c.at%7)})
		}
		s.Append(web("a", 0), c.now(), points...)
		s.Append(web("busy", 0), c.now(), Point{"cpu", Peak, 1})
	}
	for range 40 {
		c.at += 15
		write()
		s.Write(c.now())
	}
	if len(s.quiet) > 0 {
		t.Fatalf("%d tracks are quiet while they are written", len(s.quiet))
	}
	for range 10 {
		c.at += 15
		s.Append(web("busy", 0), c.now(), Point{"cpu", Peak, 1})
		s.Write(c.now())
	}
	if keys := slices.Collect(maps.Keys(s.quiet)); len(keys) != 1 || sourceOf(keys[0]) != "a" || len(s.tracks) != 1 {
		t.Fatalf("%q are quiet, of two tracks", keys)
	}
	for _, q := range s.quiet {
		if got := cap(q.data); got > len(names)*200 {
			t.Errorf("%d series of 40 samples take %d bytes", len(names), got)
		}
	}
	c.at += 15
	write()
	if len(s.quiet) > 0 {
		t.Error("a track is quiet after a sample")
	}
	want := 41
	if got := read(t, s, Query{}, "a", "cpu"); len(got) != want {
		t.Errorf("got %d samples; want %d", len(got), want)
	}
}
