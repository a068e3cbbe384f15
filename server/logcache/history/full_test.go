package history

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A full disk costs nothing but what could not be written meanwhile and was not in
// memory any longer; files have no halves of what did not fit.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("needs root for a small file system:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	c := &clock{midnight}
	s, said := opened(t, filepath.Join(dir, "metrics"), c)
	live(s, c, 100, 1)
	filler := filepath.Join(dir, "filler")
	for size := 256 << 10; size > 0; size /= 2 { // as much as there is room for
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write(bytes.Repeat([]byte{1}, size))
		_ = f.Close()
	}
	live(s, c, 350, 1)
	if got := strings.Count(said.String(), "until the disk takes them"); got != 1 {
		t.Errorf("the log says it %d times: %s", got, said)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	live(s, c, 60, 1)
	if got := strings.Count(said.String(), "on the disk again"); got != 1 {
		t.Errorf("the log says %s", said)
	}
	again, said := opened(t, s.Dir, c)
	for _, s := range []*Store{s, again} {
		got := read(t, s, Query{}, "a", "cpu")
		value := func(at int64) float64 { return float64(at-midnight) / 15 }
		wantEvery(t, got, midnight, midnight+3600, 15, value) // a window that was over
		wantEvery(t, got, c.at-60*15+15, c.at, 15, value)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if said.Len() > 0 {
		t.Errorf("the next daemon says %s", said)
	}
}
