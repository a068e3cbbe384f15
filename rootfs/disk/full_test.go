package disk

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAFullDiskProvesNothing opens a store on a disk without room to try how
// sizes are held. A directory with a limit is refused until there is.
func TestAFullDiskProvesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=64m,nr_inodes=20"); err != nil {
		t.Skip("needs root for a small file system:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	one := filepath.Join(dir, "one")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "templates"), 0o700), os.Mkdir(one, 0o700)); err != nil {
		t.Fatal(err)
	}
	var fillers []string
	for n := 0; ; n++ {
		name := filepath.Join(dir, "filler"+strings.Repeat("x", n))
		if err := os.WriteFile(name, nil, 0o600); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		fillers = append(fillers, name)
	}
	d, err := New(filepath.Join(dir, "templates"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Create(one, Size{Bytes: 8 << 20}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v; want no space left", err)
	}
	for _, name := range fillers {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.choose(); err != nil {
		t.Errorf("with room: %v", err)
	}
}
