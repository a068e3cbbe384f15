package machine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"cupola/cmd/cupola/command"
	"cupola/runtime/fault"
)

// screen is the terminal while a command draws on all of it.
type screen struct {
	env  *command.Env
	keys <-chan byte   // as they are pressed
	was  *unix.Termios // of the keyboard; nil: there is none, and Ctrl-C ends the command
}

// openScreen shows an empty screen. Close brings back what was there.
func openScreen(e *command.Env) (*screen, error) {
	s := &screen{env: e}
	fd := int(os.Stdin.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	switch {
	case errors.Is(err, unix.ENOTTY):
	case err != nil:
		return nil, fmt.Errorf("read the terminal's keys: %w", err)
	default:
		raw := *was
		raw.Lflag &^= unix.ECHO | unix.ICANON // Ctrl-C stays a signal
		raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
		if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
			return nil, fmt.Errorf("read the terminal's keys: %w", err)
		}
		s.was, s.keys = was, readKeys(os.Stdin)
	}
	fmt.Fprint(e.Out, "\x1b[?1049h\x1b[?25l") // the other screen, without a cursor
	return s, nil
}

func (s *screen) close() {
	fmt.Fprint(s.env.Out, "\x1b[?25h\x1b[?1049l")
	if s.was != nil {
		_ = unix.IoctlSetTermios(int(os.Stdin.Fd()), unix.TCSETS, s.was) // the terminal may be gone
	}
}

// readKeys reads until the program ends.
func readKeys(from io.Reader) <-chan byte {
	keys := make(chan byte, 16)
	fault.Go("keys", func() {
		one := make([]byte, 1)
		for {
			if n, err := from.Read(one); n == 0 || err != nil {
				return
			}
			keys <- one[0]
		}
	})
	return keys
}

// size is 80 by 24 if the terminal's size is unknown.
func (s *screen) size() (width, height int) {
	f, ok := s.env.Out.(*os.File)
	if ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
			return int(size.Col), int(size.Row)
		}
	}
	return 80, 24
}

// draw writes lines over the last ones.
func (s *screen) draw(lines []string) {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for n, l := range lines {
		if n > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	_, _ = io.WriteString(s.env.Out, b.String()) // the terminal may be gone
}
