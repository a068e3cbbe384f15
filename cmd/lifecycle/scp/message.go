package scp

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// message announces a file (C), a directory (D) or its end (E).
type message struct {
	kind byte
	mode os.FileMode
	size int64
	name string
}

// parseMessage reads the line of a message. A name that leads out of the
// directory it is copied into is refused.
func parseMessage(line string) (m message, err error) {
	if line == "E" {
		return message{kind: 'E'}, nil
	}
	if line == "" || line[0] != 'C' && line[0] != 'D' {
		return m, fmt.Errorf("unexpected message %.40q", line)
	}
	mode, rest, _ := strings.Cut(line[1:], " ")
	size, name, ok := strings.Cut(rest, " ")
	bits, modeErr := strconv.ParseUint(mode, 8, 12)
	m = message{kind: line[0], mode: os.FileMode(bits & 0o777), name: name}
	var sizeErr error
	m.size, sizeErr = strconv.ParseInt(size, 10, 64)
	if err := errors.Join(modeErr, sizeErr); err != nil || !ok || m.size < 0 {
		return m, fmt.Errorf("unexpected message %.40q", line)
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return m, fmt.Errorf("unexpected file name %.40q", name)
	}
	return m, nil
}

func (m message) String() string { return fmt.Sprintf("%c%04o %d %s", m.kind, m.mode, m.size, m.name) }

// times are the modification and access times of the next file: a T message.
type times struct{ modified, accessed time.Time }

func parseTimes(line string) (t times, err error) {
	var modified, accessed, micros int64
	n, err := fmt.Sscanf(line, "T%d %d %d %d", &modified, &micros, &accessed, &micros)
	if n != 4 || err != nil {
		return t, fmt.Errorf("unexpected message %.40q", line)
	}
	return times{time.Unix(modified, 0), time.Unix(accessed, 0)}, nil
}

func (t times) String() string {
	return fmt.Sprintf("T%d 0 %d 0", t.modified.Unix(), t.accessed.Unix())
}
