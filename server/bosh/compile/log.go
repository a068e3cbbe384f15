package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of what is kept of a packaging script's output.
const (
	maxLog   = 64 << 20
	keepLogs = 7 * 24 * time.Hour
	lastText = 4 << 10 // of the output that an error quotes
	lastLine = 20
)

// log takes what a packaging script writes. Beyond maxLog only its end is kept.
type log struct {
	file *os.File
	left int64
	last []byte
}

// openLog begins the log of a compilation, and removes old logs.
func openLog(dir, name string) (*log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := removeOld(dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &log{file: f, left: maxLog}, nil
}

// removeOld removes logs that were not read for long.
func removeOld(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > keepLogs {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Write keeps p. It fails only if the disk does.
func (l *log) Write(p []byte) (int, error) {
	l.last = append(l.last, p...)
	l.last = l.last[max(0, len(l.last)-lastText):]
	part := p[:min(int64(len(p)), l.left)]
	l.left -= int64(len(part))
	if _, err := l.file.Write(part); err != nil {
		return 0, err
	}
	return len(p), nil
}

// remove removes the log of a compilation that succeeded.
func (l *log) remove() error {
	return errors.Join(l.file.Close(), os.Remove(l.file.Name()))
}

// fail adds to an error the last lines of the output, and where all of it is.
func (l *log) fail(why error) error {
	if err := l.file.Close(); err != nil {
		return errors.Join(why, err)
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(l.last), "?")), "\n")
	lines = lines[max(0, len(lines)-lastLine):]
	if len(lines) == 1 && lines[0] == "" {
		return errors.Join(why, os.Remove(l.file.Name()))
	}
	return fmt.Errorf("%w\n%s\nThe whole output is in %s on the daemon's machine.", why, strings.Join(lines, "\n"), l.file.Name()) //nolint:staticcheck,revive // a text of several lines
}
