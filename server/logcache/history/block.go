package history

import (
	"encoding/binary"
	"io"
	"os"

	"cupola/server/logcache/record"
)

// A block is a file of the samples of a window:
//
//	header
//	tracks, one record each: origin, number of series, and of each kind, name, chunk; those of a source are one area
//	index, records of entries: source, 1 for an app's, offset and length of its area
//	offset of the index, uint64, little-endian
//
// An area whose source was deleted is a hole.
const (
	blockHeader  = "cupola metrics 1\n"
	blockTrack   = 'T'
	blockIndex   = 'I'
	blockEntries = 1000 // of an index record
	blockFooter  = 8
)

// entry is a source in an index.
type entry struct {
	source     string
	owned      bool
	at, length uint64
}

// encodeBlock is a block's content.
func encodeBlock(all []chunk) []byte {
	b := []byte(blockHeader)
	var index []entry
	all = bySource(all)
	for len(all) > 0 {
		t, n := all[0].series.track, 0
		for n < len(all) && all[n].series.track == t {
			n++
		}
		if len(index) == 0 || index[len(index)-1].source != t.Source {
			index = append(index, entry{source: t.Source, at: uint64(len(b))})
		}
		e := &index[len(index)-1]
		b = appendTrack(b, t, all[:n])
		e.owned, e.length = e.owned || t.owned(), uint64(len(b))-e.at
		all = all[n:]
	}
	at := uint64(len(b))
	for len(index) > 0 {
		some := index[:min(len(index), blockEntries)]
		b = record.Append(b, blockIndex, func(b []byte) []byte {
			for _, e := range some {
				b = record.AppendText(b, e.source)
				var owned byte
				if e.owned {
					owned = 1
				}
				b = binary.AppendUvarint(binary.AppendUvarint(append(b, owned), e.at), e.length)
			}
			return b
		})
		index = index[len(some):]
	}
	return binary.LittleEndian.AppendUint64(b, at)
}

func appendTrack(b []byte, t *track, all []chunk) []byte {
	return record.Append(b, blockTrack, func(b []byte) []byte {
		b = binary.AppendUvarint(appendOrigin(b, &t.Origin), uint64(len(all)))
		for _, c := range all {
			b = record.AppendText(record.AppendText(append(b, byte(c.series.kind)), c.series.name), c.samples)
		}
		return b
	})
}

// maxIndex is how large an index can be: 65 536 sources of 200 bytes.
const maxIndex = 16 << 20

// readIndex reads the index of a block.
func readIndex(f io.ReaderAt, size int64) ([]entry, error) {
	var at [blockFooter]byte
	if size < int64(len(blockHeader)+blockFooter) {
		return nil, record.ErrInvalid
	}
	if _, err := f.ReadAt(at[:], size-blockFooter); err != nil {
		return nil, err
	}
	begin := binary.LittleEndian.Uint64(at[:])
	end := uint64(size) - blockFooter
	if begin < uint64(len(blockHeader)) || begin > end || end-begin > maxIndex {
		return nil, record.ErrInvalid
	}
	b := make([]byte, end-begin)
	if _, err := f.ReadAt(b, int64(begin)); err != nil {
		return nil, err
	}
	return parseIndex(b, begin)
}

// parseIndex parses index records; areas are before the index.
func parseIndex(b []byte, begin uint64) (all []entry, err error) {
	for len(b) > 0 {
		kind, body, rest, err := record.Cut(b)
		if err != nil || kind != blockIndex {
			return nil, record.ErrInvalid
		}
		for b = rest; len(body) > 0; {
			var e entry
			if e, body, err = cutEntry(body); err != nil || e.at > begin || e.length > begin-e.at {
				return nil, record.ErrInvalid
			}
			all = append(all, e)
		}
	}
	return all, nil
}

func cutEntry(b []byte) (e entry, rest []byte, err error) {
	source, b, err := record.CutText(b)
	if err != nil || len(b) == 0 || len(source) == 0 {
		return e, nil, record.ErrInvalid
	}
	e.source, e.owned = string(source), b[0] != 0
	if e.at, b, err = record.CutNumber(b[1:]); err == nil {
		e.length, b, err = record.CutNumber(b)
	}
	return e, b, err
}

// found is a chunk as it is read; samples are a part of what was parsed.
type found struct {
	kind    Kind
	name    []byte
	samples []byte
}

// parseArea calls each with the tracks of an area and their chunks, up to the first
// that is not whole. The origin is as the block has it; cutOrigin reads it.
func parseArea(b []byte, each func(origin []byte, all []found)) {
	for {
		kind, body, rest, err := record.Cut(b)
		if err != nil || kind != blockTrack {
			return
		}
		b = rest
		after, err := skipOrigin(body)
		if err != nil {
			return
		}
		origin := body[:len(body)-len(after)]
		n, after, err := record.CutNumber(after)
		if err != nil || n > uint64(len(after)) {
			return
		}
		var all []found
		for range n {
			var f found
			if f, after, err = cutFound(after); err != nil {
				return
			}
			all = append(all, f)
		}
		each(origin, all)
	}
}

func cutFound(b []byte) (f found, rest []byte, err error) {
	if len(b) == 0 || Kind(b[0]) >= kinds {
		return f, nil, record.ErrInvalid
	}
	f.kind = Kind(b[0])
	if f.name, b, err = record.CutText(b[1:]); err == nil {
		f.samples, b, err = record.CutText(b)
	}
	if err == nil && len(f.samples) < 2 { // chunkenc reads the number of samples without looking
		err = record.ErrInvalid
	}
	return f, b, err
}

// area reads an entry's area into a buffer, which it returns.
func (e *entry) area(f *os.File, buffer []byte) ([]byte, error) {
	if uint64(cap(buffer)) < e.length {
		buffer = make([]byte, e.length)
	}
	buffer = buffer[:e.length]
	_, err := f.ReadAt(buffer, int64(e.at)) //nolint:gosec // it is within the file
	return buffer, err
}
