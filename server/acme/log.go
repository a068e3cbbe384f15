package acme

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger leads certmagic's log to the daemon's, one level lower: what failed is in the
// daemon's words, too.
func newLogger(log *slog.Logger) *zap.Logger { return zap.New(core{log: log}) }

// core writes to a slog.Logger.
type core struct{ log *slog.Logger }

func level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelWarn
	case l == zapcore.WarnLevel:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// Enabled reports whether messages of a level are logged.
func (c core) Enabled(l zapcore.Level) bool { return c.log.Enabled(context.Background(), level(l)) }

// With adds fields to all messages.
func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{c.log.With(attributes(fields)...)}
}

// Check adds the core to a message that it logs.
func (c core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write logs a message.
func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.log.Log(context.Background(), level(e.Level), "ACME client", append([]any{"said", e.Message}, attributes(fields)...)...)
	return nil
}

// Sync does nothing.
func (c core) Sync() error { return nil }

func attributes(fields []zapcore.Field) (all []any) {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(m)
	}
	for _, key := range slices.Sorted(maps.Keys(m.Fields)) {
		all = append(all, key, m.Fields[key])
	}
	return all
}
