// Package archive keeps log lines that are older than what the log cache holds, compressed: each file is
// a segment of one source, as the cache wrote it. Files are whole or not there. What is kept is
// bounded by size and age; a source that writes more loses its oldest lines first.
package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Config bounds an Archive.
type Config struct {
	Dir      string
	MaxBytes int64         // of all files
	MaxAge   time.Duration // of the newest line of a file
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
}

// Archive is a directory with a directory for each source. It may be used from several goroutines.
type Archive struct {
	Config

	encoding sync.Mutex // one segment at a time is compressed
	encoder  *zstd.Encoder

	mu      sync.Mutex
	sources map[string]*files
	bytes   int64
	broken  bool // the last file was not written
}

// files are those of a source, the oldest first.
type files struct {
	all   []File
	bytes int64
}

// File is a segment.
type File struct {
	First, Last time.Time // of its lines
	path        string
	bytes       int64
}

const suffix = ".zst"

// Open reads which files there are.
func Open(c Config) (*Archive, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep old log lines: %w", err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	a := &Archive{Config: c, encoder: encoder, sources: map[string]*files{}}
	dirs, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, dir := range dirs {
		a.openLocked(filepath.Join(c.Dir, dir.Name()))
	}
	a.pruneLocked()
	return a, nil
}

// openLocked takes the files of a source that earlier daemons wrote. Others are deleted. The first one says which
// source it is.
func (a *Archive) openLocked(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		a.Log.Warn("old log lines were left out", "err", err)
	}
	source := ""
	for _, entry := range entries {
		f, err := fileOf(dir, entry)
		if err == nil && source == "" {
			source, err = sourceOf(f.path)
		}
		if err != nil || dirName(source) != filepath.Base(dir) {
			a.Log.Warn("old log lines were left out: the file is not whole or not ours", "dir", dir, "file", entry.Name(), "err", err)
			_ = os.Remove(filepath.Join(dir, entry.Name())) // or it is left out the next time
			continue
		}
		a.addLocked(source, f)
	}
}

// fileOf is a file by its name.
func fileOf(dir string, entry os.DirEntry) (f File, err error) {
	var first, last int64
	if _, err := fmt.Sscanf(entry.Name(), "%d-%d"+suffix, &first, &last); err != nil || entry.Name() != fileName(first, last) {
		return f, errDamaged
	}
	info, err := entry.Info()
	if err != nil {
		return f, err
	}
	return File{First: time.Unix(0, first), Last: time.Unix(0, last), path: filepath.Join(dir, entry.Name()), bytes: info.Size()}, nil
}

func fileName(first, last int64) string { return fmt.Sprintf("%d-%d%s", first, last, suffix) }

func dirName(source string) string {
	sum := sha256.Sum256([]byte(source)) // a source's name may be any text
	return hex.EncodeToString(sum[:16])
}

// Add keeps a segment with the lines of a source from first to last. Adding it again changes nothing.
func (a *Archive) Add(source string, segment []byte, first, last time.Time) {
	if last.Before(a.oldest()) {
		return
	}
	f := File{First: first, Last: last, path: filepath.Join(a.Dir, dirName(source), fileName(first.UnixNano(), last.UnixNano()))}
	b, err := a.encode(source, segment)
	if err == nil {
		f.bytes = int64(len(b))
		err = writeFile(f.path, b)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		if !a.broken {
			a.Log.Warn("old log lines were not kept", "err", err)
		}
		a.broken = true
		return
	}
	a.broken = false
	a.addLocked(source, f)
	a.pruneLocked()
}

// writeFile writes a file as a whole. It is not synced: a power cut may lose the last one.
func writeFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, b, 0o600); err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(temp)))
	}
	return os.Rename(temp, path)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (a *Archive) addLocked(source string, f File) {
	if of := a.sources[source]; of != nil {
		if i := slices.IndexFunc(of.all, func(o File) bool { return o.path == f.path }); i >= 0 {
			a.forgetLocked(source, i)
		}
	}
	of := a.sources[source]
	if of == nil {
		of = &files{}
		a.sources[source] = of
	}
	at, _ := slices.BinarySearchFunc(of.all, f, func(a, b File) int { return a.Last.Compare(b.Last) })
	of.all = slices.Insert(of.all, at, f)
	of.bytes += f.bytes
	a.bytes += f.bytes
}

// forgetLocked forgets the nth file of a source.
func (a *Archive) forgetLocked(source string, n int) {
	of := a.sources[source]
	of.bytes -= of.all[n].bytes
	a.bytes -= of.all[n].bytes
	if of.all = slices.Delete(of.all, n, n+1); len(of.all) == 0 {
		delete(a.sources, source)
	}
}

// pruneLocked deletes what is too old, and while there is too much the oldest file of the source that has the
// most.
func (a *Archive) pruneLocked() {
	oldest := a.Now().Add(-a.MaxAge)
	for source, of := range a.sources {
		for n := len(of.all); n > 0 && of.all[0].Last.Before(oldest); n-- {
			a.removeOldestLocked(source)
		}
	}
	for a.bytes > a.MaxBytes {
		most, largest := "", int64(-1)
		for source, of := range a.sources {
			if of.bytes > largest {
				most, largest = source, of.bytes
			}
		}
		a.removeOldestLocked(most)
	}
}

func (a *Archive) removeOldestLocked(source string) {
	f := a.sources[source].all[0]
	a.forgetLocked(source, 0)
	if err := ignoreMissing(os.Remove(f.path)); err != nil {
		a.Log.Warn("old log lines were not deleted", "err", err)
	}
	_ = os.Remove(filepath.Dir(f.path)) // if it was the last one
}

// oldest is when the newest line of a file may be from.
func (a *Archive) oldest() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Now().Add(-a.MaxAge)
}

// SetLimits changes MaxBytes and MaxAge, and deletes what is beyond them.
func (a *Archive) SetLimits(maxBytes int64, maxAge time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.MaxBytes, a.MaxAge = maxBytes, maxAge
	a.pruneLocked()
}

// Delete deletes what there is of a source.
func (a *Archive) Delete(source string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.sources[source] != nil {
		a.removeOldestLocked(source)
	}
}

// Sources are those of which there are lines.
func (a *Archive) Sources() (all []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for source := range a.sources {
		all = append(all, source)
	}
	return all
}

// Files are those with lines of a source from one time until another, the newest first.
func (a *Archive) Files(source string, from, until time.Time) (all []File) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.sources[source]
	if of == nil {
		return nil
	}
	for _, f := range slices.Backward(of.all) {
		if !f.Last.Before(from) && f.First.Before(until) {
			all = append(all, f)
		}
	}
	return all
}
