package logcache

import (
	"bufio"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// fileHeader opens a saved cache.
type fileHeader struct {
	Format  string
	Version int
	Count   int
}

// currentHeader: a file of version 1 has log lines alone, one of version 2 has
// them, too. Segments have them now.
var currentHeader = fileHeader{Format: "cupola log cache", Version: 3}

// Save writes what was measured to a file, for a Load after a restart. The file
// is replaced as a whole or not at all. Where log lines have no Dir it has those.
func (c *Cache) Save(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("save log cache: %w", err)
	}
	defer os.Remove(f.Name()) // gone already when all went well
	w := bufio.NewWriter(f)
	views, count := c.all()
	err = encode(w, views, count)
	err = errors.Join(err, w.Flush(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("save log cache: %w", err)
	}
	return nil
}

// all is every envelope; of each shelf, the source written last is at the end.
func (c *Cache) all() (views []view, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.shelves {
		if i == logShelf && c.disk != nil {
			continue
		}
		rings := slices.Collect(maps.Values(c.shelves[i].sources))
		slices.SortFunc(rings, func(a, b *ring) int { return cmp.Compare(a.touched, b.touched) })
		for _, r := range rings {
			views = append(views, r.all())
			count += r.count
		}
	}
	return views, count
}

func encode(w io.Writer, views []view, count int) error {
	enc := gob.NewEncoder(w)
	header := currentHeader
	header.Count = count
	if err := enc.Encode(header); err != nil {
		return err
	}
	for i := range views {
		for part := range views[i].parts(false) {
			for j := range part {
				if err := enc.Encode(&part[j]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Load adds what Save wrote. A missing file does not matter; one that cannot be
// read as a whole is left out, with a warning: old log lines are not worth a
// daemon that does not start.
func (c *Cache) Load(path string, log *slog.Logger) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		log.Warn("saved log lines were not read", "err", err)
		return
	}
	defer f.Close()
	// What Save writes is hardly larger than the cache may be.
	all, err := decode(io.LimitReader(bufio.NewReader(f), 2*c.maxBytes()))
	if err != nil {
		log.Warn("saved log lines were left out: the file is damaged or of another version", "err", err)
		return
	}
	if lines := c.appendAll(all); lines && c.disk != nil { // an older daemon's: they are on the disk now, and must not come twice
		if err := c.Save(path); err != nil {
			log.Warn("saved log lines may come twice after a kill", "err", err)
		}
	}
}

// appendAll appends what was saved, and reports whether log lines were among it. Nothing was written to it since, so it is packed.
func (c *Cache) appendAll(all []view) (lines bool) {
	for i := range all {
		for part := range all[i].parts(false) {
			for _, e := range part {
				c.Append(e)
				lines = lines || e.Kind == Log
			}
		}
	}
	for i := range c.shelves {
		c.packShelf(i, math.MaxUint64)
	}
	return lines
}

func (c *Cache) maxBytes() (sum int64) {
	for i := range c.shelves {
		sum += c.shelves[i].maxBytes
	}
	return sum
}

// decode returns what encode wrote, packed: unpacked it may take more than the daemon does otherwise.
func decode(r io.Reader) (all []view, err error) {
	dec := gob.NewDecoder(r)
	var header fileHeader
	if err := dec.Decode(&header); err != nil {
		return nil, err
	}
	if header.Format != currentHeader.Format || header.Version < 1 || header.Version > currentHeader.Version {
		return nil, fmt.Errorf("got format %q version %d", header.Format, header.Version)
	}
	var some []Envelope // of one source
	var bytes int64
	for range header.Count {
		var e Envelope
		if err := dec.Decode(&e); err != nil {
			return nil, err
		}
		if e.SourceID == "" || !slices.Contains(kinds, e.Kind) {
			return nil, errors.New("got an envelope without a source or of no kind")
		}
		if len(some) > 0 && (some[0].SourceID != e.SourceID || bytes > chunkBytes) {
			all, some, bytes = append(all, viewOf(some)), nil, 0
		}
		some, bytes = append(some, e), bytes+e.bytes()
	}
	if len(some) > 0 {
		all = append(all, viewOf(some))
	}
	return all, nil
}

// viewOf is a view of envelopes of one source.
func viewOf(all []Envelope) view {
	if !fit(all) {
		return view{source: all[0].SourceID, newest: all}
	}
	return view{source: all[0].SourceID, chunks: []chunk{pack(all)}}
}
