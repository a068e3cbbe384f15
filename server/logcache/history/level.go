package history

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
)

// resolution is what a level is made by. All numbers are seconds.
type resolution struct {
	step   int64 // between samples; each divides the next one's
	window int64 // of a block; a multiple of all steps up to the next level's
	kept   int64
	share  int64 // of all bytes, in sixteenths
}

// resolutions are those of the levels. Only series of requests are in the first:
// containers are measured every 15 s.
var resolutions = [...]resolution{
	{step: 1, window: 15 * 60, kept: 2 * 3600, share: 2},
	{step: 15, window: 3600, kept: 2 * 86400, share: 7},
	{step: 300, window: 12 * 3600, kept: 30 * 86400, share: 7},
}

// levels is how many there are.
const levels = len(resolutions)

// upTo is the end of the slice of time that a second is in: the slice of an end has
// the seconds after the previous end, and the end.
func upTo(at, step int64) int64 { return (at + step - 1) / step * step }

// level is the samples of one resolution. Fields are guarded by the Store's mu; those
// of files are Run's alone.
type level struct {
	resolution
	number  int
	end     int64     // of the window in memory; 0: none yet
	pending []byte    // of the journal of that window: what is not written
	numbers uint64    // given in the journal, to tracks and series
	frozen  []*frozen // windows that are over and not written, the oldest first
	blocks  []block   // the oldest first

	journal *journal // of the newest window that Run wrote of; nil: none
}

// frozen is a window that is over.
type frozen struct {
	end    int64
	chunks []chunk
}

// chunk is the samples of a series in a window.
type chunk struct {
	series  *series
	samples []byte // as chunkenc.XORChunk has them, with times in seconds
}

// block is a file of a window.
type block struct {
	path string
	end  int64
	size int64
}

// maxFrozen bounds the windows that wait for a full disk.
const maxFrozen = 2

func (l *level) path(dir string, end int64, suffix string) string {
	return filepath.Join(dir, strconv.Itoa(l.number)+"-"+strconv.FormatInt(end, 10)+suffix)
}

// begins is from when on the level has all samples that there are; none: never.
func (l *level) begins() int64 {
	if l.end == 0 {
		return math.MaxInt64
	}
	begins := l.end - l.window
	for _, f := range l.frozen {
		begins = min(begins, f.end-l.window)
	}
	for _, b := range l.blocks {
		begins = min(begins, b.end-l.window)
	}
	return begins
}

// freeze ends the window in memory. It returns how many windows are lost for it.
func (s *Store) freeze(l *level) (lost int) {
	f := &frozen{end: l.end}
	for _, t := range s.tracks {
		f.add(l, t)
	}
	s.freezeQuiet(l, f)
	l.pending, l.numbers = nil, 0
	if len(f.chunks) > 0 {
		l.frozen = append(l.frozen, f)
	}
	if lost = len(l.frozen) - maxFrozen; lost > 0 {
		l.frozen = slices.Delete(l.frozen, 0, lost)
	}
	return max(lost, 0)
}

// add moves what the window has of a track.
func (f *frozen) add(l *level, t *track) {
	t.numbers[l.number] = 0
	for _, m := range t.series {
		h := m.heads[l.number]
		if h == nil {
			continue
		}
		h.number = 0
		if h.chunk != nil {
			f.chunks = append(f.chunks, chunk{m, h.chunk.Bytes()})
			h.chunk, h.appender = nil, nil
		}
	}
}

// excess are the blocks to remove: those that are too old, or from a future that a
// wrong clock had, and the oldest ones while there are too many bytes.
func (l *level) excess(now, maxBytes int64) (gone []block) {
	var size int64
	for i, b := range slices.Backward(l.blocks) {
		size += b.size
		if b.end < now-l.kept || b.end > now+2*l.window || size > maxBytes*l.share/16 {
			gone = append(gone, l.blocks[i])
		}
	}
	return gone
}
