package history

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config bounds a Store; zero values take the defaults.
type Config struct {
	Dir       string
	MaxBytes  int64 // of all files but journals; 512 MiB
	MaxSeries int   // in memory; 65 536, of which one source has at most an eighth
	Log       *slog.Logger
	Now       func() time.Time // time.Now
}

const (
	defaultBytes  = 512 << 20
	defaultSeries = 1 << 16
	sourceShare   = 8
	// maxPending bounds what waits for a slow disk, for each level. Bytes.
	maxPending = 16 << 20
)

// Origin is whose metrics they are.
type Origin struct {
	Source   string            // the GUID of an app or a service instance
	Instance string            // its index; "": the app
	Tags     map[string]string // not to be changed after Append
}

// owned reports whether the source is an app or a service instance of Cloud Controller, as the tags say.
func (o Origin) owned() bool {
	return o.Tags["app_id"] == o.Source || o.Tags["service_instance_id"] == o.Source
}

// Point is a value by its name.
type Point struct {
	Name  string
	Kind  Kind
	Value float64
}

// Store keeps metrics. It may be used from several goroutines.
type Store struct {
	Config

	mu      sync.Mutex
	levels  [levels]level
	tracks  map[string]*track     // by Origin.key
	quiet   map[string]quietTrack // likewise; of no track in tracks
	rested  int64                 // when quiet tracks were looked for
	count   map[string]int        // series in memory, by source
	series  int                   // all of them
	known   map[string]bool       // sources; those of which a track is owned are true
	deleted []string              // sources whose blocks Run cleans
	full    bool                  // the limit of series was reached, and the log says so
	lossy   bool                  // windows were lost, and the log says so

	files files
}

// Open makes the directory, and reads what an earlier daemon left.
func Open(c Config) (*Store, error) {
	c.MaxBytes = cmp.Or(max(c.MaxBytes, 0), defaultBytes)
	c.MaxSeries = cmp.Or(max(c.MaxSeries, 0), defaultSeries)
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Store{Config: c, tracks: map[string]*track{}, quiet: map[string]quietTrack{}, count: map[string]int{}, known: map[string]bool{}}
	for i := range s.levels {
		s.levels[i] = level{resolution: resolutions[i], number: i}
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refill()
	s.tick(c.Now().Unix())
	return s, nil
}

// key identifies an origin, by Tags in the order of their names.
func (o *Origin) key(b []byte) []byte { return appendOrigin(b, o) }

// Append keeps what was measured of an origin. Times are whole seconds; what is not
// newer than what there is of a series is dropped.
func (s *Store) Append(o Origin, at time.Time, points ...Point) {
	if o.Source == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.track(o)
	values := make([]value, 0, len(points))
	for _, p := range points {
		if m := s.seriesOf(t, p.Name, p.Kind); m != nil {
			values = append(values, value{m, p.Value})
		}
	}
	for k := range s.levels {
		some := values
		if slices.ContainsFunc(some, func(v value) bool { return v.series.kind.finest() != k }) {
			some = slices.DeleteFunc(slices.Clone(some), func(v value) bool { return v.series.kind.finest() != k })
		}
		s.put(k, t, at.Unix(), some)
	}
	if len(t.series) == 0 { // no series were left for it
		delete(s.tracks, string(t.key(nil)))
	}
}

// value is a sample without its time.
type value struct {
	series *series
	value  float64
}

func (s *Store) track(o Origin) *track {
	key := o.key(nil)
	t := s.tracks[string(key)]
	if q, ok := s.quiet[string(key)]; ok {
		t = s.wake(string(key), q)
	}
	if t == nil {
		t = &track{Origin: o}
		s.tracks[string(key)] = t
	}
	return t
}

// seriesOf is a track's series by its name; nil if the limit is reached.
func (s *Store) seriesOf(t *track, name string, kind Kind) *series {
	for _, m := range t.series {
		if m.name == name && m.kind == kind {
			return m
		}
	}
	if s.series >= s.MaxSeries || s.count[t.Source] >= s.MaxSeries/sourceShare {
		if !s.full {
			s.full = true
			s.Log.Warn("metrics of new instances are not kept on the disk: there are too many series", "app_guid", t.Source, "series", s.series)
		}
		return nil
	}
	m := &series{track: t, name: name, kind: kind}
	for k := kind.finest(); k < levels; k++ {
		m.heads[k] = &head{}
	}
	t.series = append(t.series, m)
	s.series++
	s.count[t.Source]++
	s.know(t.Source, t.owned())
	return m
}

func (s *Store) know(source string, owned bool) { s.known[source] = s.known[source] || owned }

// put adds samples of one time to a level, and to what the next one makes of them.
func (s *Store) put(k int, t *track, at int64, values []value) {
	l := &s.levels[k]
	if len(values) == 0 || at <= l.end-l.window { // of a window that is over
		return
	}
	s.advance(l, at)
	kept := values[:0:0]
	for _, v := range values {
		h := v.series.heads[k]
		if at <= h.last {
			continue
		}
		if err := h.add(at, v.value); err != nil {
			continue
		}
		kept = append(kept, v)
	}
	s.note(l, t, at, kept)
	if k+1 < levels {
		s.gather(k+1, t, at, kept)
	}
}

// gather adds samples to the slices of a level, of which those before are over.
func (s *Store) gather(k int, t *track, at int64, values []value) {
	var over []value
	end, next := int64(0), upTo(at, s.levels[k].step)
	for _, v := range values {
		for _, m := range s.alike(v.series, k) {
			if h := m.heads[k]; h.slice.count > 0 && h.slice.end < next {
				if end != h.slice.end {
					s.put(k, t, end, over)
					end, over = h.slice.end, nil
				}
				over = append(over, value{m, h.slice.value(m.kind)})
				h.slice = slice{}
			}
		}
	}
	s.put(k, t, end, over)
	for _, v := range values {
		for _, m := range s.alike(v.series, k) {
			h := m.heads[k]
			if next <= h.last {
				continue
			}
			if m.kind.counts() {
				s.keepBegin(k, m, at, v.value)
			}
			h.slice.end = next
			h.slice.add(at, v.value)
		}
	}
}

// keepBegin adds samples to a level without which a counter's growth would be lost: what
// it began with, and what it had before and after it began again.
func (s *Store) keepBegin(k int, m *series, at int64, now float64) {
	h, step := m.heads[k], s.levels[k].step
	switch {
	case h.slice.count > 0 && now < h.slice.last:
		s.put(k, m.track, h.slice.at, []value{{m, h.slice.last}})
		if at < upTo(at, step) { // else it comes with the end of the slice
			s.put(k, m.track, at, []value{{m, now}})
		}
	case h.slice.count == 0 && h.last == 0:
		s.put(k, m.track, upTo(at, step)-step, []value{{m, now}})
	}
}

// alike are the series of a level that the samples of a finer one go to.
func (s *Store) alike(m *series, k int) []*series {
	if m.kind != Peak || k != maximum.finest() {
		return []*series{m}
	}
	if peak := s.seriesOf(m.track, m.name, maximum); peak != nil {
		return []*series{m, peak}
	}
	return []*series{m}
}

// advance freezes the level's window once a time is not in it any longer.
func (s *Store) advance(l *level, at int64) {
	if at <= l.end {
		return
	}
	if l.end > 0 {
		for _, t := range s.tracks {
			s.closeSlices(l.number, t, l.end)
		}
		s.closeQuiet(l.number, l.end)
		if lost := s.freeze(l); lost > 0 && !s.lossy {
			s.lossy = true
			s.Log.Warn("metrics are lost: the disk did not take them", "step", time.Duration(l.step)*time.Second)
		}
	}
	l.end = upTo(at, l.window)
}

// grace is how long a slice of time waits for samples that come late.
const grace = 5

// tick closes the slices and the windows that are over, and forgets series of which
// nothing is in memory.
func (s *Store) tick(now int64) {
	s.rewind(now)
	for _, t := range s.tracks {
		for k := 1; k < levels; k++ {
			s.closeSlices(k, t, now-grace*int64(k))
		}
	}
	for k := 1; k < levels; k++ {
		s.closeQuiet(k, now-grace*int64(k))
	}
	for k := range s.levels {
		if l := &s.levels[k]; l.end > 0 && now > l.end+l.step+2*grace {
			s.advance(l, now)
		}
	}
	for key, t := range s.tracks {
		if s.forgetIdle(t); len(t.series) == 0 {
			delete(s.tracks, key)
		}
	}
	if now >= s.rested+quietEvery || now < s.rested {
		s.rested = now
		s.packQuiet(now)
	}
	s.full = s.full && s.series >= s.MaxSeries/sourceShare
}

// forgetIdle forgets the series of a track of which nothing is in memory.
func (s *Store) forgetIdle(t *track) {
	left := slices.DeleteFunc(t.series, (*series).idle)
	gone := len(t.series) - len(left)
	if gone == 0 {
		return
	}
	s.series -= gone
	if s.count[t.Source] -= gone; s.count[t.Source] == 0 {
		delete(s.count, t.Source)
	}
	t.series = left
}

// closeSlices adds the samples of a track's slices that end by then to a level.
func (s *Store) closeSlices(k int, t *track, by int64) {
	var over []value
	end := int64(0)
	for _, m := range slices.Clone(t.series) { // put may add the next level's
		h := m.heads[k]
		if h == nil || h.slice.count == 0 || h.slice.end > by {
			continue
		}
		if end != h.slice.end {
			s.put(k, t, end, over)
			end, over = h.slice.end, nil
		}
		over = append(over, value{m, h.slice.value(m.kind)})
		h.slice = slice{}
	}
	s.put(k, t, end, over)
}

// rewind forgets what is in memory when the clock was set back by more than a slice:
// nothing would be kept until it is as late again.
func (s *Store) rewind(now int64) {
	for k := range s.levels {
		l := &s.levels[k]
		if l.end <= upTo(now, l.window)+l.window {
			continue
		}
		s.Log.Warn("metrics of the future are forgotten: the clock was set back", "until", time.Unix(l.end, 0))
		s.wakeAll()
		l.end, l.pending, l.numbers = upTo(now, l.window), nil, 0
		for _, t := range s.tracks {
			t.numbers[k] = 0
			for _, m := range t.series {
				if m.heads[k] != nil {
					m.heads[k] = &head{}
				}
			}
		}
		l.frozen = slices.DeleteFunc(l.frozen, func(f *frozen) bool { return f.end > l.end })
	}
}

// refill makes the unfinished slices of levels again of the finer levels' samples.
func (s *Store) refill() {
	for k := range levels - 1 {
		for _, t := range s.tracks {
			for _, m := range slices.Clone(t.series) {
				if h := m.heads[k]; h != nil && h.chunk != nil {
					s.refillSeries(k+1, m, h)
				}
			}
		}
	}
}

func (s *Store) refillSeries(k int, m *series, from *head) {
	last := m.heads[k].last
	it := from.chunk.Iterator(nil)
	for it.Next() != 0 {
		if at, v := it.At(); at > last {
			s.gather(k, m.track, at, []value{{m, v}})
		}
	}
}

// Delete forgets a source. Run cleans the files of it.
func (s *Store) Delete(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[source]; !ok {
		return
	}
	s.drop(source)
	s.deleted = append(s.deleted, source)
	for k := range s.levels {
		s.levels[k].noteDeleted(source)
	}
}

// drop forgets what is in memory of a source.
func (s *Store) drop(source string) {
	delete(s.known, source)
	maps.DeleteFunc(s.tracks, func(_ string, t *track) bool {
		if t.Source != source {
			return false
		}
		s.series -= len(t.series)
		return true
	})
	maps.DeleteFunc(s.quiet, func(key string, q quietTrack) bool {
		if sourceOf(key) != source {
			return false
		}
		s.series -= q.series
		return true
	})
	delete(s.count, source)
	for k := range s.levels {
		for _, f := range s.levels[k].frozen {
			f.chunks = slices.DeleteFunc(slices.Clone(f.chunks), func(c chunk) bool { return c.series.track.Source == source })
		}
	}
}

// Sources are those that there are metrics of; of apps and service instances of Cloud Controller it is true.
func (s *Store) Sources() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.known)
}

// bySource are chunks in the order of their sources. Those of a track stay together.
func bySource(all []chunk) []chunk {
	return slices.SortedStableFunc(slices.Values(all), func(a, b chunk) int {
		return strings.Compare(a.series.track.Source, b.series.track.Source)
	})
}
