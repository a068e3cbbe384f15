package history

import (
	"math"

	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Kind says what a coarser level keeps of a series.
type Kind uint8

// The kinds.
const (
	Last    Kind = iota // the last value
	Mean                // the mean
	Peak                // the mean, and the maximum besides it
	Counter             // the last value; grows until it begins again
	Fast                // a Counter that is measured every second
	maximum             // the maxima of a Peak, in the coarsest level
	kinds
)

// finest is the first level that has the kind.
func (k Kind) finest() int {
	switch k {
	case Fast:
		return 0
	case maximum:
		return levels - 1
	}
	return 1
}

// counts reports whether the kind is a counter.
func (k Kind) counts() bool { return k == Counter || k == Fast }

// track is the series of one origin.
type track struct {
	Origin
	series  []*series
	numbers [levels]uint64 // in the levels' journals; 0: none
}

// series is one metric of a track.
type series struct {
	track *track
	name  string
	kind  Kind
	heads [levels]*head // of the levels that have it
}

// head is the newest samples of a series in a level, and what the level has of the
// slice of time for its next sample.
type head struct {
	chunk    *chunkenc.XORChunk // nil: no samples in the window
	appender chunkenc.Appender
	last     int64  // time of the newest sample, also of earlier windows
	number   uint64 // in the journal; 0: none
	written  uint64 // bits of the last value in the journal

	slice slice
}

// slice is what is measured since the last sample.
type slice struct {
	end   int64 // its sample's time
	count int
	sum   float64
	peak  float64
	last  float64
	at    int64 // time of last
}

func (s *slice) add(at int64, value float64) {
	if s.count == 0 || value > s.peak {
		s.peak = value
	}
	s.count++
	s.sum += value
	s.last, s.at = value, at
}

// value is the sample of a kind.
func (s *slice) value(k Kind) float64 {
	switch k {
	case Mean, Peak:
		return rounded(s.sum / float64(s.count))
	case maximum:
		return s.peak
	}
	return s.last
}

// rounded has 20 bits of a number's fraction: the others cost room and say nothing.
func rounded(v float64) float64 {
	return math.Float64frombits(math.Float64bits(v) &^ (1<<32 - 1))
}

// add appends a sample, which must be newer than the last one.
func (h *head) add(at int64, value float64) error {
	if h.chunk == nil {
		chunk := chunkenc.NewXORChunk()
		appender, err := chunk.Appender()
		if err != nil {
			return err
		}
		h.chunk, h.appender = chunk, appender
	}
	h.appender.Append(0, at, value)
	h.last = at
	return nil
}

// idle reports whether nothing of the series is in memory.
func (m *series) idle() bool {
	for _, h := range m.heads {
		if h != nil && (h.chunk != nil || h.slice.count > 0) {
			return false
		}
	}
	return true
}
