package e2e

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Created returns what waits until something whose name begins with a prefix is created in a
// directory, or was since. It sees also what is gone at once, and takes no processor from who creates it.
func Created(t *testing.T, dir string) func(prefix string, within time.Duration) bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { events.Close() })
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE); err != nil {
		t.Fatalf("watch %s: %v", dir, err)
	}
	return func(prefix string, within time.Duration) bool {
		_ = events.SetReadDeadline(time.Now().Add(within))
		buf := make([]byte, 64<<10)
		for {
			n, err := events.Read(buf)
			if err != nil {
				return false
			}
			for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
				end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:])) // the name's length
				if strings.HasPrefix(string(rest[unix.SizeofInotifyEvent:end]), prefix) {
					return true
				}
				rest = rest[end:]
			}
		}
	}
}
