package logcache

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/server/logcache/archive"
	"cupola/server/logcache/record"
)

// disk stores log lines in files, so that they outlive the daemon. Each source
// has two segments and appends to the newer one; when that is full, it
// replaces the older one, which goes to the archive. Together they hold as much as the ring in
// memory, so the files' limits are twice the cache's. Lines are written but not synced: a
// killed daemon loses none, a power cut the last seconds.
//
// A goroutine that appends to a source writes its lines unless another one is
// writing; then that one writes them, too. So a slow disk delays one appender
// per source, and a busy source needs few writes.
type disk struct {
	dir      string
	archive  *archive.Archive // takes what is older; nil: it is deleted
	log      *slog.Logger
	maxLines int   // of a segment
	maxBytes int64 // of a segment

	mu     sync.Mutex
	tracks map[string]*track // by source ID
	open   int               // files
	clock  uint64
	broken bool      // the last write failed
	rest   time.Time // until when nothing is written, after that
}

// The names of a source's segments end so.
const (
	newerSuffix = ".log"
	olderSuffix = ".old"
)

const (
	// maxOpenSegments bounds the descriptors that segments need.
	maxOpenSegments = 64
	// maxPending bounds what waits for a slow disk, for each source, and while a segment is compressed. Bytes.
	maxPending = 1 << 20
	// diskRest is how long nothing is tried after a write that failed.
	diskRest = 10 * time.Second
)

// track is what is known of a source's segments.
type track struct {
	source string

	mu      sync.Mutex
	pending []byte                // records to be written
	rotate  int                   // where in pending the next segment begins; -1: nowhere
	numbers map[tagsDigest]uint64 // of the tags that the segment has, by the digest of their encoding
	lines   int                   // of the segment, with those pending
	bytes   int64                 // likewise
	begun   bool                  // the segment has its source record
	reset   bool                  // remove the files before the next write
	evicted bool                  // likewise, but the archive gets them first
	writing bool                  // a goroutine writes; it owns what follows
	gone    bool                  // not in disk.tracks any longer

	file    *os.File // nil: closed
	written int64    // bytes of the file that are whole
	used    uint64   // when it was written last, by disk.clock
}

// tagsDigest identifies encoded tags in less room than they take.
type tagsDigest [2]uint64

var tagsSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func digestOf(tags []byte) tagsDigest {
	return tagsDigest{maphash.Bytes(tagsSeeds[0], tags), maphash.Bytes(tagsSeeds[1], tags)}
}

// buffers are what records are encoded in. A source has one only while it writes: most are silent.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func takeBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

// giveBuffer lets others use b, which the caller does not any longer.
func giveBuffer(b []byte) {
	if cap(b) <= maxPending {
		buffers.Put(&b)
	}
}

func fileName(source string) string {
	sum := sha256.Sum256([]byte(source)) // a source's name may be any text
	return hex.EncodeToString(sum[:16])
}

// path is that of a source's segments, without the suffix.
func (d *disk) path(source string) string { return filepath.Join(d.dir, fileName(source)) }

// track returns a source's track, locked.
func (d *disk) track(source string) *track {
	for {
		d.mu.Lock()
		t := d.tracks[source]
		if t == nil {
			t = &track{source: source, rotate: -1}
			d.tracks[source] = t
		}
		d.mu.Unlock()
		t.mu.Lock()
		if !t.gone {
			return t
		}
		t.mu.Unlock()
	}
}

// pausing reports whether nothing is written because the disk failed just now.
func (d *disk) pausing(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return now.Before(d.rest)
}

// write keeps a line. Where it cannot be written it is in memory alone.
func (d *disk) write(e *Envelope) {
	if d.pausing(time.Now()) {
		return
	}
	t := d.track(e.SourceID)
	defer t.mu.Unlock()
	if len(t.pending) > maxPending {
		return
	}
	t.encode(e, d.maxLines, d.maxBytes)
	d.flush(t)
}

// encode appends a line to what is pending.
func (t *track) encode(e *Envelope, maxLines int, maxBytes int64) {
	if (t.lines >= maxLines || t.bytes >= maxBytes) && t.rotate < 0 {
		t.rotate = len(t.pending)
		t.begin()
	}
	if t.pending == nil {
		t.pending = takeBuffer()
	}
	was := len(t.pending)
	if !t.begun {
		t.pending = appendSource(t.pending, e.SourceID)
		t.begun = true
	}
	tags := appendTags(takeBuffer(), e.InstanceID, e.Tags)
	defer giveBuffer(tags)
	digest := digestOf(tags)
	number, ok := t.numbers[digest]
	if !ok {
		if t.numbers == nil {
			t.numbers = map[tagsDigest]uint64{}
		}
		number = uint64(len(t.numbers))
		t.numbers[digest] = number
		t.pending = record.Append(t.pending, tagsRecord, func(b []byte) []byte {
			return append(binary.AppendUvarint(b, number), tags...)
		})
	}
	t.pending = appendLine(t.pending, number, e)
	t.lines++
	t.bytes += int64(len(t.pending) - was)
}

// begin starts the books of a segment that has nothing yet.
func (t *track) begin() {
	clear(t.numbers)
	t.lines, t.bytes, t.begun = 0, 0, false
}

// flush writes what is pending, unless another goroutine does already. t.mu is held, but
// not while the disk works.
func (d *disk) flush(t *track) {
	if t.writing {
		return
	}
	t.writing = true
	defer func() { t.writing = false }()
	for t.reset || len(t.pending) > 0 {
		if t.evicted {
			d.archiveUnlocked(t)
		}
		now, next, reset, rotates := t.pending, []byte(nil), t.reset, t.rotate >= 0
		if rotates {
			now, next = t.pending[:t.rotate], t.pending[t.rotate:]
		}
		whole := t.pending
		t.pending, t.rotate, t.reset = nil, -1, false
		if err := d.storeUnlocked(t, now, next, reset, rotates); err != nil {
			d.failed(t, err)
		}
		giveBuffer(whole)
	}
	if t.file == nil && !t.begun && t.lines == 0 { // nothing is left of it
		d.forget(t)
	}
}

// archiveUnlocked moves both segments to the archive, without t.mu, which is held again when it
// returns or panics.
func (d *disk) archiveUnlocked(t *track) {
	t.evicted = false
	t.mu.Unlock()
	defer t.mu.Lock()
	d.keep(d.path(t.source) + olderSuffix)
	d.keep(d.path(t.source) + newerSuffix)
}

// keep moves a segment to the archive.
func (d *disk) keep(path string) {
	if d.archive == nil {
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return // there is none
	}
	s := parseSegment(b)
	if len(s.lines) == 0 {
		return
	}
	first, last := s.lines[0].Timestamp, s.lines[0].Timestamp
	for i := range s.lines {
		if at := s.lines[i].Timestamp; at.Before(first) {
			first = at
		} else if at.After(last) {
			last = at
		}
	}
	d.archive.Add(s.source, b[:s.bytes], first, last)
}

// storeUnlocked is store without t.mu, which is held again when it returns or
// panics.
func (d *disk) storeUnlocked(t *track, now, next []byte, reset, rotates bool) error {
	t.mu.Unlock()
	defer t.mu.Lock()
	return d.store(t, now, next, reset, rotates)
}

// store brings records into the files; who calls it owns them.
func (d *disk) store(t *track, now, next []byte, reset, rotates bool) error {
	if reset {
		d.close(t)
		t.written = 0
		if err := errors.Join(remove(d.path(t.source)+newerSuffix), remove(d.path(t.source)+olderSuffix)); err != nil {
			return err
		}
	}
	if err := d.append(t, now); err != nil || !rotates {
		return err
	}
	d.close(t)
	d.keep(d.path(t.source) + olderSuffix)
	if err := os.Rename(d.path(t.source)+newerSuffix, d.path(t.source)+olderSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.written = 0
	return d.append(t, next)
}

// append writes records behind those that the newer segment has.
func (d *disk) append(t *track, records []byte) error {
	if len(records) == 0 {
		return nil
	}
	if err := d.ensureOpen(t); err != nil {
		return err
	}
	if n, err := t.file.Write(records); err != nil {
		if n > 0 && t.file.Truncate(t.written) != nil { // what follows could not be read
			d.close(t)
			t.written = 0
			err = errors.Join(err, remove(d.path(t.source)+newerSuffix))
		}
		return err
	}
	t.written += int64(len(records))
	d.works()
	return nil
}

// works notes that a write succeeded.
func (d *disk) works() {
	d.mu.Lock()
	was := d.broken
	d.broken = false
	d.mu.Unlock()
	if was {
		d.log.Info("log lines are kept on the disk again")
	}
}

func (d *disk) ensureOpen(t *track) error {
	d.mu.Lock()
	d.clock++
	t.used = d.clock
	d.mu.Unlock()
	if t.file != nil {
		return nil
	}
	f, err := os.OpenFile(d.path(t.source)+newerSuffix, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	t.file = f
	d.mu.Lock()
	d.open++
	over := d.open > maxOpenSegments
	d.mu.Unlock()
	if over {
		d.closeIdle(t)
	}
	return nil
}

// closeIdle closes the file that was written the longest ago, of those whose
// sources are not being written.
func (d *disk) closeIdle(but *track) {
	for _, t := range d.openTracks() {
		if t != but && d.closed(t) {
			return
		}
	}
}

// forgetTags forgets which tags the segments of sources have that nobody has written to for a while: the next line brings its own again.
func (d *disk) forgetTags() {
	d.mu.Lock()
	tracks := slices.Collect(maps.Values(d.tracks))
	tracks = slices.DeleteFunc(tracks, func(t *track) bool { return t.used > 0 })
	d.mu.Unlock()
	for _, t := range tracks {
		t.mu.Lock()
		t.numbers = nil
		t.mu.Unlock()
	}
}

// openTracks are the tracks with open files, the one that was written the longest
// ago first.
func (d *disk) openTracks() []*track {
	d.mu.Lock()
	defer d.mu.Unlock()
	var open []*track
	for _, t := range d.tracks {
		if t.used > 0 {
			open = append(open, t)
		}
	}
	slices.SortFunc(open, func(a, b *track) int { return cmp.Compare(a.used, b.used) })
	return open
}

// closed closes a track's file unless its source is being written, and reports
// whether it did.
func (d *disk) closed(t *track) bool {
	if !t.mu.TryLock() {
		return false
	}
	defer t.mu.Unlock()
	if t.writing || t.file == nil {
		return false
	}
	d.close(t)
	return true
}

func (d *disk) close(t *track) {
	if t.file == nil {
		return
	}
	_ = t.file.Close() // nothing is buffered
	t.file = nil
	d.mu.Lock()
	t.used = 0
	d.open--
	d.mu.Unlock()
}

// failed gives the disk a rest. What was pending for it is in memory alone; the
// tags of the segment are written again, as some may be missing.
func (d *disk) failed(t *track, err error) {
	d.mu.Lock()
	was := d.broken
	d.broken, d.rest = true, time.Now().Add(diskRest)
	d.mu.Unlock()
	if !was {
		d.log.Warn("log lines are kept in memory alone until the disk takes them: a kill loses them", "err", err)
	}
	t.pending, t.rotate = nil, -1
	clear(t.numbers)
	t.begun, t.bytes = t.written > 0, t.written
}

// remove forgets a source, and its files.
func (d *disk) remove(source string) {
	t := d.track(source)
	defer t.mu.Unlock()
	d.removeLocked(t)
}

// evict moves a source's files to the archive.
func (d *disk) evict(source string) {
	t := d.track(source)
	defer t.mu.Unlock()
	t.evicted = true
	d.removeLocked(t)
}

func (d *disk) removeLocked(t *track) {
	t.pending, t.rotate, t.reset = nil, -1, true
	t.begin()
	d.flush(t)
}

// forget drops a track that has no files. t.mu is held.
func (d *disk) forget(t *track) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.gone = true
	delete(d.tracks, t.source)
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// saved is a source's segments as an earlier daemon left them.
type saved struct {
	name  string                 // of the files, without their suffixes
	files map[string]os.FileInfo // by suffix
}

// written is when the source was written.
func (s *saved) written() time.Time {
	if f := s.files[newerSuffix]; f != nil {
		return f.ModTime()
	}
	return s.files[olderSuffix].ModTime()
}

// load calls each with the lines of all sources, the source written last at the end, and goes on behind
// what is whole of their segments. Files that are not ours, or of which nothing can be
// read, are removed.
func (d *disk) load(each func(lines []Envelope)) error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	byName := map[string]*saved{}
	for _, entry := range entries {
		suffix := filepath.Ext(entry.Name())
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || suffix != olderSuffix && suffix != newerSuffix {
			continue
		}
		name := strings.TrimSuffix(entry.Name(), suffix)
		if byName[name] == nil {
			byName[name] = &saved{name: name, files: map[string]os.FileInfo{}}
		}
		byName[name].files[suffix] = info
	}
	for _, s := range slices.SortedFunc(maps.Values(byName), func(a, b *saved) int {
		return cmp.Or(a.written().Compare(b.written()), cmp.Compare(a.name, b.name))
	}) {
		each(slices.Concat(d.loadFile(s, olderSuffix), d.loadFile(s, newerSuffix)))
	}
	return nil
}

// loadFile returns the lines of a segment, of which there may be none.
func (d *disk) loadFile(saved *saved, suffix string) []Envelope {
	info := saved.files[suffix]
	if info == nil {
		return nil
	}
	path := filepath.Join(d.dir, saved.name+suffix)
	if info.Size() > 4*d.maxBytes {
		d.log.Warn("saved log lines were left out: the file is too large", "file", path)
		_ = os.Remove(path) // or it is left out the next time
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		d.log.Warn("saved log lines were not read", "err", err)
		return nil
	}
	s := parseSegment(b)
	if s.source == "" || fileName(s.source) != saved.name {
		d.log.Warn("saved log lines were left out: the file is damaged", "file", path)
		_ = os.Remove(path) // or it is left out the next time
		return nil
	}
	if suffix == newerSuffix {
		d.resume(path, &s, len(b))
	}
	return s.lines
}

// resume goes on behind what is whole of a newer segment of so many bytes.
func (d *disk) resume(path string, s *segment, size int) {
	if s.bytes < size {
		if err := os.Truncate(path, int64(s.bytes)); err != nil {
			d.log.Warn("the damaged end of saved log lines was not cut off", "err", err)
		}
	}
	t := d.track(s.source)
	defer t.mu.Unlock()
	t.begun, t.lines, t.bytes, t.written = true, len(s.lines), int64(s.bytes), int64(s.bytes)
}

// closeAll closes all files.
func (d *disk) closeAll() {
	d.mu.Lock()
	tracks := slices.Collect(maps.Values(d.tracks))
	d.mu.Unlock()
	for _, t := range tracks {
		t.mu.Lock()
		if !t.writing {
			d.close(t)
		}
		t.mu.Unlock()
	}
}

// openDisk makes the directory.
func openDisk(dir string, log *slog.Logger, maxLines int, maxBytes int64) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep log lines: %w", err)
	}
	return &disk{dir: dir, log: log, maxLines: maxLines, maxBytes: maxBytes, tracks: map[string]*track{}}, nil
}
