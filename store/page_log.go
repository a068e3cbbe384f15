package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
)

// The layout of SQLite's write-ahead log: https://www.sqlite.org/fileformat2.html#walformat
const (
	logHeader   = 32 // bytes; the size of pages at 8, the salt at 16
	frameHeader = 24 // bytes; the page's number at 0, the salt at 8
)

// pageLog notes which pages commits change, by the frames of the write-ahead log. It
// belongs to who has the writer.
//
// SQLite begins the log again once a checkpoint has copied all of it. So that no frame
// is lost before it was read, a checkpoint copies no more than what was: see pin.
type pageLog struct {
	s       *Store
	db      *sql.DB // for the transactions of pin
	file    string
	frames  int    // of the log that were read
	salt    string // of the log that they are of
	readers map[*Pages]bool
}

func (s *Store) openPageLog(file string) error {
	db, err := open(file, "_txlock=deferred&_pragma=query_only(1)&_pragma=cache_size(-512)"+s.mode)
	if err != nil {
		return err
	}
	db.SetMaxIdleConns(1)
	s.pages = &pageLog{s: s, db: db, file: file + "-wal", readers: map[*Pages]bool{}}
	return nil
}

// pin begins a transaction that reads the database as of the last commit, which was
// noted with all before it. While it lasts, checkpoints copy no commit after it.
func (l *pageLog) pin(ctx context.Context, pinned func()) (*transaction, error) {
	slot, err := l.s.writers.Acquire(ctx, "pages")
	if err != nil {
		return nil, err
	}
	defer slot.Release()
	l.s.endBatch()
	l.scan(ctx)
	t, err := begin(ctx, l.db, "BEGIN")
	if err != nil {
		return nil, nameFault(err)
	}
	var pages int // SQLite begins to read with the first statement
	if err := t.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
		t.Rollback() //nolint:errcheck // there is an error already
		return nil, nameFault(err)
	}
	pinned()
	return t, nil
}

// scan notes the pages of the commits since the last scan. If they cannot be known, all
// pages count as changed. The caller has the writer.
func (l *pageLog) scan(ctx context.Context) {
	var busy, frames, copied int
	err := l.s.writer.QueryRowContext(ctx, "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &frames, &copied)
	if err == nil {
		err = l.read(frames)
	}
	if err == nil {
		return
	}
	l.frames, l.salt = 0, ""
	for p := range l.readers {
		p.all = true
	}
	if len(l.readers) > 0 && ctx.Err() == nil {
		l.s.log.WarnContext(ctx, "the write-ahead log cannot be read: the next reader of changes reads the whole database", slog.Any("err", err))
	}
}

// read reads the headers of the frames that were not read yet.
func (l *pageLog) read(frames int) error {
	if frames <= 0 { // it was begun again, and has nothing yet
		l.frames = 0
		return nil
	}
	f, err := os.Open(l.file)
	if err != nil {
		return err
	}
	defer f.Close()
	var header [logHeader]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return err
	}
	size, salt := int64(binary.BigEndian.Uint32(header[8:])), string(header[16:24])
	if salt != l.salt || frames < l.frames {
		l.frames, l.salt = 0, salt
	}
	if len(l.readers) == 0 {
		l.frames = frames
	}
	for ; l.frames < frames; l.frames++ {
		if err := l.note(f, logHeader+int64(l.frames)*(frameHeader+size)); err != nil {
			return fmt.Errorf("frame %d: %w", l.frames+1, err)
		}
	}
	return nil
}

// note notes the page of the frame at an offset of the log.
func (l *pageLog) note(log io.ReaderAt, at int64) error {
	var header [frameHeader]byte
	if _, err := log.ReadAt(header[:], at); err != nil {
		return err
	}
	if string(header[8:16]) != l.salt {
		return fmt.Errorf("it has the salt %x; the log has %x", header[8:16], l.salt)
	}
	for p := range l.readers {
		p.changed[binary.BigEndian.Uint32(header[:])] = true
	}
	return nil
}
