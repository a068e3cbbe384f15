package logcache

// A Cache has a shelf for each of these.
const (
	logShelf = iota
	gaugeShelf
	timerShelf
	shelves
)

// sourceShare is the part of all bytes of a shelf that a source gets at most,
// so that one that talks much does not push all others out.
const sourceShare = 8

// shelf is the rings of all sources, bounded together.
type shelf struct {
	maxPerSource int
	maxBytes     int64
	sources      map[string]*ring
	bytes        int64
	clock        uint64 // counts inserts: which source was written last
	packed       uint64 // the clock when all was packed the last time
}

// insert gives e as it is kept, and the sources that went for it.
func (s *shelf) insert(e Envelope) (kept Envelope, evicted []string) {
	r := s.sources[e.SourceID]
	if r == nil {
		r = &ring{source: e.SourceID}
		s.sources[e.SourceID] = r
	}
	s.clock++
	r.touched = s.clock
	e = r.insert(e)
	s.bytes += e.bytes()
	for r.count > s.maxPerSource || r.count > 1 && r.bytes > s.maxBytes/sourceShare {
		s.bytes -= r.evict()
	}
	for s.bytes > s.maxBytes && len(s.sources) > 1 {
		evicted = append(evicted, s.evictSource())
	}
	return e, evicted
}

// evictSource drops the source that was written to the longest ago.
func (s *shelf) evictSource() (oldest string) {
	for id, r := range s.sources {
		if oldest == "" || r.touched < s.sources[oldest].touched {
			oldest = id
		}
	}
	s.delete(oldest)
	return oldest
}

func (s *shelf) delete(sourceID string) {
	if r := s.sources[sourceID]; r != nil {
		s.bytes -= r.bytes
		delete(s.sources, sourceID)
	}
}

// pack packs what is loose of a source. It is quiet if nothing was written of it since the clock was at since.
func (s *shelf) pack(sourceID string, since uint64) {
	if r := s.sources[sourceID]; r != nil {
		r.pack(r.touched <= since)
	}
}
