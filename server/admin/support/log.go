package support

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
)

// Bounds of the lines that are kept.
const (
	maxLines = 1000
	maxLine  = 2 << 10
)

// Log keeps the last lines of a daemon's log.
type Log struct {
	mu    sync.Mutex
	lines [][]byte
	next  int // where the next line goes, once there are maxLines
}

// Handler is a handler that also keeps the lines.
func (l *Log) Handler(inner slog.Handler) slog.Handler {
	return both{inner, slog.NewJSONHandler(l, nil)}
}

// Write keeps one line.
func (l *Log) Write(line []byte) (int, error) {
	kept := bytes.Clone(line)
	if len(kept) > maxLine {
		kept = append(kept[:maxLine], "…\n"...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) < maxLines {
		l.lines = append(l.lines, kept)
	} else {
		l.lines[l.next] = kept
		l.next = (l.next + 1) % maxLines
	}
	return len(line), nil
}

// Text is all lines, the oldest first.
func (l *Log) Text() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Join(append(l.lines[l.next:len(l.lines):len(l.lines)], l.lines[:l.next]...), nil)
}

// both is a handler that hands records to two.
type both [2]slog.Handler

func (b both) Enabled(ctx context.Context, v slog.Level) bool {
	return b[0].Enabled(ctx, v) || b[1].Enabled(ctx, v)
}

func (b both) Handle(ctx context.Context, r slog.Record) error {
	if b[1].Enabled(ctx, r.Level) {
		_ = b[1].Handle(ctx, r.Clone()) // it only writes to memory
	}
	if !b[0].Enabled(ctx, r.Level) {
		return nil
	}
	return b[0].Handle(ctx, r)
}

func (b both) WithAttrs(attrs []slog.Attr) slog.Handler {
	return both{b[0].WithAttrs(attrs), b[1].WithAttrs(attrs)}
}

func (b both) WithGroup(name string) slog.Handler {
	return both{b[0].WithGroup(name), b[1].WithGroup(name)}
}
