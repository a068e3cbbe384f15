package history

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/durable"
)

const (
	journalSuffix = ".journal"
	blockSuffix   = ".block"

	writeInterval = time.Second
	tickInterval  = 5 * time.Second
	syncInterval  = time.Minute
	// rest is how long nothing is tried after a write that failed.
	restInterval = 10 * time.Second
	// calmInterval is how long no write may fail until the log says so.
	calmInterval = 10 * time.Minute
	maxJournal   = 64 << 20
)

// files is what the writer of the files knows.
type files struct {
	mu     sync.Mutex // held while files are written
	broken bool       // the last write failed, and the log says so
	rest   time.Time  // until when nothing is written, after that
	ticked time.Time
	synced time.Time
}

// Run writes the files until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	ticker := time.NewTicker(writeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.Write(s.Now())
		case <-ctx.Done():
			return nil
		}
	}
}

// Close writes what Run has not.
func (s *Store) Close() error {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	s.files.rest = time.Time{}
	var errs []error
	for k := range s.levels {
		l := &s.levels[k]
		errs = append(errs, s.writePending(l))
		if l.journal != nil {
			errs = append(errs, l.journal.file.Sync(), l.journal.file.Close())
			l.journal = nil
		}
	}
	return errors.Join(errs...)
}

// Write writes the files, as Run does every second.
func (s *Store) Write(now time.Time) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if now.Sub(s.files.ticked) >= tickInterval || now.Before(s.files.ticked) {
		s.files.ticked = now
		s.tickLocked(now)
	}
	if now.Before(s.files.rest) && s.files.rest.Sub(now) <= restInterval {
		return
	}
	if err := s.writeAll(now); err != nil {
		if !s.files.broken {
			s.Log.Warn("metrics are in memory alone until the disk takes them", "err", err)
		}
		s.files.broken, s.files.rest = true, now.Add(restInterval)
		return
	}
	if s.files.broken && now.Sub(s.files.rest) > calmInterval {
		s.Log.Info("metrics are kept on the disk again")
		s.files.broken = false
		s.works()
	}
}

// works lets the log say again what it says once.
func (s *Store) works() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lossy = false
}

func (s *Store) tickLocked(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick(now.Unix())
}

func (s *Store) writeAll(now time.Time) error {
	for k := range s.levels {
		if err := s.writeLevel(&s.levels[k], now); err != nil {
			return err
		}
	}
	s.cleanDeleted()
	if age := now.Sub(s.files.synced); age < syncInterval && age >= 0 {
		return nil
	}
	s.files.synced = now
	for k := range s.levels {
		s.prune(&s.levels[k], now)
		if j := s.levels[k].journal; j != nil && j.sync {
			j.sync = false
			if err := unix.Fdatasync(int(j.file.Fd())); err != nil { //nolint:gosec // a descriptor
				return err
			}
		}
	}
	return nil
}

func (s *Store) writeLevel(l *level, now time.Time) error {
	wrote := false
	for f := s.oldestFrozen(l); f.end > 0; f = s.oldestFrozen(l) {
		if err := s.writeBlock(l, f); err != nil {
			return err
		}
		wrote = true
	}
	if err := s.writePending(l); err != nil {
		return err
	}
	if wrote {
		s.prune(l, now)
		s.removeJournals(l)
	}
	return nil
}

// oldestFrozen is the window to write next; its end is 0 if there is none.
func (s *Store) oldestFrozen(l *level) frozen {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(l.frozen) == 0 {
		return frozen{}
	}
	return *l.frozen[0]
}

func (s *Store) writeBlock(l *level, f frozen) error {
	content := encodeBlock(f.chunks)
	path := l.path(s.Dir, f.end, blockSuffix)
	if err := durable.Write(path, content, 0o600); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.frozen = slices.DeleteFunc(slices.Clone(l.frozen), func(o *frozen) bool { return o.end == f.end })
	others := slices.DeleteFunc(slices.Clone(l.blocks), func(b block) bool { return b.end == f.end }) // the file that was replaced, after the clock was set back
	l.blocks = append(others, block{path, f.end, int64(len(content))})
	return nil
}

// writePending appends to the journal of the window in memory.
func (s *Store) writePending(l *level) error {
	s.mu.Lock()
	b, end := l.pending, l.end
	l.pending = nil
	s.mu.Unlock()
	if len(b) == 0 {
		return nil
	}
	err := l.appendJournal(s.Dir, end, b)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.renumber(l) // the next records do without those that are missing
	}
	return err
}

func (l *level) appendJournal(dir string, end int64, b []byte) error {
	if l.journal != nil && l.journal.end != end {
		_ = l.journal.file.Close() // nothing is buffered
		l.journal = nil
	}
	if l.journal == nil {
		f, err := os.OpenFile(l.path(dir, end, journalSuffix), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		l.journal = &journal{file: f, end: end, size: info.Size()}
	}
	if n, err := l.journal.file.Write(b); err != nil {
		if n > 0 {
			err = errors.Join(err, l.journal.file.Truncate(l.journal.size)) // else what follows could not be read
		}
		return err
	}
	l.journal.size += int64(len(b))
	l.journal.sync = true
	return nil
}

// removeJournals removes the journals of windows that are neither in memory nor
// waiting for the disk.
func (s *Store) removeJournals(l *level) {
	s.mu.Lock()
	keep := map[int64]bool{l.end: true}
	for _, f := range l.frozen {
		keep[f.end] = true
	}
	s.mu.Unlock()
	if l.journal != nil && !keep[l.journal.end] {
		_ = l.journal.file.Close()
		l.journal = nil
	}
	for _, f := range s.list(l, journalSuffix) {
		if !keep[f.end] {
			_ = os.Remove(f.path) // tried again after the next window
		}
	}
}

// prune removes the blocks that are too many.
func (s *Store) prune(l *level, now time.Time) {
	s.mu.Lock()
	gone := l.excess(now.Unix(), s.MaxBytes)
	l.blocks = slices.DeleteFunc(slices.Clone(l.blocks), func(b block) bool { return slices.Contains(gone, b) })
	s.mu.Unlock()
	for _, b := range gone {
		_ = os.Remove(b.path) // the next daemon tries it again
	}
}

// cleanDeleted makes holes where the blocks have deleted sources.
func (s *Store) cleanDeleted() {
	s.mu.Lock()
	sources := s.deleted
	s.deleted = nil
	var blocks []block
	if len(sources) > 0 {
		for k := range s.levels {
			blocks = append(blocks, s.levels[k].blocks...)
		}
	}
	s.mu.Unlock()
	for _, b := range blocks {
		if err := b.clean(sources); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.Log.Warn("metrics of deleted apps were not removed", "file", b.path, "err", err)
		}
	}
}

func (b *block) clean(sources []string) error {
	f, err := os.OpenFile(b.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	index, err := readIndex(f, b.size)
	if err != nil {
		return err
	}
	for _, e := range index {
		if slices.Contains(sources, e.source) {
			err = errors.Join(err, e.clear(f))
		}
	}
	return err
}

// clear makes a hole, or where the file system has none, zeros.
func (e *entry) clear(f *os.File) error {
	at, length := int64(e.at), int64(e.length)                                                         //nolint:gosec // within the file
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, length) //nolint:gosec // a descriptor
	if errors.Is(err, unix.EOPNOTSUPP) {
		_, err = f.WriteAt(make([]byte, length), at)
	}
	return err
}

// list is the level's files of a kind, the oldest first.
func (s *Store) list(l *level, suffix string) (all []block) {
	entries, _ := os.ReadDir(s.Dir) // Open made it
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		end, ok2 := strings.CutPrefix(name, strconv.Itoa(l.number)+"-")
		n, err := strconv.ParseInt(end, 10, 64)
		info, err2 := e.Info()
		if ok && ok2 && err == nil && err2 == nil && info.Mode().IsRegular() && n > 0 && n%l.window == 0 {
			all = append(all, block{filepath.Join(s.Dir, e.Name()), n, info.Size()})
		}
	}
	slices.SortFunc(all, func(a, b block) int { return cmp.Compare(a.end, b.end) })
	return all
}

// load reads what an earlier daemon left.
func (s *Store) load() error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".new") { // durable.Write did not end
			_ = os.Remove(filepath.Join(s.Dir, e.Name()))
		}
	}
	for k := range s.levels {
		l := &s.levels[k]
		for _, b := range s.list(l, blockSuffix) {
			s.loadBlock(l, b)
		}
		if n := len(l.blocks); n > 0 {
			l.end = l.blocks[n-1].end + l.window // a block does not change any more
		}
		for _, j := range s.list(l, journalSuffix) {
			s.loadJournal(l, j)
		}
	}
	return nil
}

func (s *Store) loadBlock(l *level, b block) {
	f, err := os.Open(b.path)
	if err != nil {
		s.Log.Warn("saved metrics were not read", "err", err)
		return
	}
	defer f.Close()
	index, err := readIndex(f, b.size)
	if err != nil {
		s.Log.Warn("saved metrics were left out: the file is damaged", "file", b.path)
		_ = os.Remove(b.path) // or it is left out the next time
		return
	}
	for _, e := range index {
		s.know(e.source, e.owned)
	}
	l.blocks = append(l.blocks, b)
}

// loadJournal reads the samples of a window, which is in memory then. The window of
// the journal before is frozen.
func (s *Store) loadJournal(l *level, j block) {
	if slices.ContainsFunc(l.blocks, func(b block) bool { return b.end == j.end }) || j.size > maxJournal {
		_ = os.Remove(j.path) // killed between the block and this
		return
	}
	b, err := os.ReadFile(j.path)
	if err != nil {
		s.Log.Warn("saved metrics were not read", "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeze(l)
	l.end = j.end
	r := replay{store: s, level: l}
	if whole := r.read(b); whole < len(b) {
		if err := os.Truncate(j.path, int64(whole)); err != nil {
			s.Log.Warn("the damaged end of saved metrics was not cut off", "err", err)
		}
	}
}
