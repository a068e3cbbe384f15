package datadir

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestModesAreAsGivenWhateverTheUmask(t *testing.T) {
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	d, err := Open(filepath.Join(t.TempDir(), "data"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	info, err := os.Stat(d.Path())
	if err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("got %v, %v; want a directory of mode 0711", info, err)
	}
}
