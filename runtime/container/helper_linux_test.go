package container

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHelperIsRenewed has a daemon bring other programs than the last: the next
// containers find those, and the mount stays as it is where nothing has changed.
func TestHelperIsRenewed(t *testing.T) {
	needRoot(t)
	base := tempDir(t)
	source, dir := filepath.Join(base, "source"), filepath.Join(base, "helper")
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(base, "new"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(base, "new"), filepath.Join(source, name)); err != nil {
			t.Fatal(err)
		}
	}
	mounted := func(want map[string]string) (device uint64) {
		t.Helper()
		if err := mountHelper(source, dir); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
				t.Errorf("%s: got %q, %v; want %q", name, got, err, text)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(want) {
			t.Errorf("got %v, %v; want %d files", entries, err, len(want))
		}
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			t.Fatal(err)
		}
		return st.Dev
	}
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	put("init", "first")
	first := mounted(map[string]string{"init": "first"})
	if again := mounted(map[string]string{"init": "first"}); again != first {
		t.Errorf("got device %d; want %d, as nothing has changed", again, first)
	}
	put("init", "second")
	mounted(map[string]string{"init": "second"})
	put("fetch", "third")
	mounted(map[string]string{"init": "second", "fetch": "third"})
	if err := os.Remove(filepath.Join(source, "init")); err != nil {
		t.Fatal(err)
	}
	mounted(map[string]string{"fetch": "third"})
	if err := os.WriteFile(filepath.Join(dir, "fetch"), nil, 0o600); err == nil {
		t.Error("the mount can be written to")
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("got %v, %v; want one mount, which is gone", entries, err)
	}
}
