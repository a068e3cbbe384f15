package volume

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cupola/rootfs/disk"
	"cupola/runtime/users"
)

const owner = 0x6c000000 + 2000

var onDisk = users.Range{Base: 0x6c000000, Size: users.Size}

// newStore gives a way to open the store of a new directory again and again.
func newStore(t *testing.T) (dir string, open func() *Store) {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	base := t.TempDir()
	dir = filepath.Join(base, "volumes")
	open = func() *Store {
		t.Helper()
		disks, err := disk.New(filepath.Join(base, "templates"), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Config{Dir: dir, Disks: disks, Users: onDisk, Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Teardown(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	return dir, open
}

func openVolume(t *testing.T, s *Store, name string) string {
	t.Helper()
	at, err := s.open(name)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestAVolumeOutlivesTheStore(t *testing.T) {
	_, open := newStore(t)
	s := open()
	if err := s.Create("db", Spec{Bytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	at := openVolume(t, s, "db")
	info, err := os.Stat(at)
	if err != nil || info.Mode().Perm() != 0o700 || info.Sys().(*syscall.Stat_t).Uid != owner {
		t.Fatalf("got %v, %v; want 0700 and its owner's", info, err)
	}
	if err := os.WriteFile(filepath.Join(at, "row"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Teardown(); err != nil { // as when the machine goes down
		t.Fatal(err)
	}
	s = open()
	if err := s.Create("db", Spec{Bytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(openVolume(t, s, "db"), "row"))
	if err != nil || string(got) != "1" {
		t.Fatalf("got %q, %v; want what was written", got, err)
	}
	if used, err := s.Used("db"); err != nil || used <= 0 {
		t.Errorf("got %d bytes, %v", used, err)
	}
	if err := errors.Join(s.Remove("db"), s.Remove("db")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.open("db"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v; want that there is none", err)
	}
}

func TestAVolumeHoldsNoMoreThanItsSize(t *testing.T) {
	_, open := newStore(t)
	s := open()
	if m, why := s.cfg.Disks.Method(); m != disk.Loop {
		t.Skipf("disks are held by %s (%s), which spares root", m, why)
	}
	if err := s.Create("db", Spec{Bytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(openVolume(t, s, "db"), "big"), make([]byte, 20<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v; want no space", err)
	}
	err = os.WriteFile(filepath.Join(openVolume(t, s, "db"), "big"), make([]byte, 15<<20), 0o600)
	if err != nil {
		t.Errorf("got %v; want room for 15 of 16 MiB", err)
	}
}

// TestAVolumeGrows with what is in it.
func TestAVolumeGrows(t *testing.T) {
	dir, open := newStore(t)
	s := open()
	if m, why := s.cfg.Disks.Method(); m != disk.Loop {
		t.Skipf("disks are held by %s (%s), which spares root", m, why)
	}
	if err := s.Create("db", Spec{Bytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	at := openVolume(t, s, "db")
	if err := os.WriteFile(filepath.Join(at, "kept"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	fits := func(mb int) error {
		t.Helper()
		name := filepath.Join(openVolume(t, s, "db"), "big")
		return errors.Join(os.WriteFile(name, make([]byte, mb<<20), 0o600), os.Remove(name))
	}
	if err := fits(40); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v; want no space", err)
	}
	for range 2 {
		if err := s.Grow("db", 48<<20); err != nil {
			t.Fatal(err)
		}
	}
	if err := fits(46); err != nil {
		t.Errorf("got %v; want room for 46 of 48 MiB", err)
	}
	if err := s.Grow("db", 16<<20); err != nil { // never smaller
		t.Error(err)
	}
	// a daemon that was killed has made the image larger, and no more
	if err := errors.Join(s.Teardown(), os.Truncate(filepath.Join(dir, "db", disk.Image), 200<<20)); err != nil {
		t.Fatal(err)
	}
	s = open()
	if err := fits(100); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v; want no space yet", err)
	}
	if err := s.Grow("db", 300<<20); err != nil {
		t.Fatal(err)
	}
	if err := fits(290); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(openVolume(t, s, "db"), "kept")); err != nil {
		t.Error(err)
	}
}

// TestACopyHasAllOfAVolume also where a killed one has left a part; the volume stays as it
// is. One in use is not copied.
func TestACopyHasAllOfAVolume(t *testing.T) {
	dir, open := newStore(t)
	s := open()
	if m, why := s.cfg.Disks.Method(); m != disk.Loop {
		t.Skipf("disks are held by %s (%s)", m, why)
	}
	if err := s.Create("db", Spec{Bytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	row := filepath.Join(openVolume(t, s, "db"), "row")
	if err := errors.Join(os.WriteFile(row, []byte("1"), 0o640), os.Chown(row, owner+1, owner+2)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(openVolume(t, s, "db"), "open"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Copy("db", "copy"); err == nil {
		t.Error("a volume in use was copied")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Copy("none", "copy"); !errors.Is(err, ErrNone) {
		t.Errorf("got %v; want %v", err, ErrNone)
	}
	half := filepath.Join(dir, "copy", disk.Data)
	if err := errors.Join(os.MkdirAll(half, 0o700), os.WriteFile(filepath.Join(dir, "copy", disk.Image), []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Copy("db", "copy"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(row, []byte("2"), 0o640); err != nil { // its disk is writable still
		t.Error(err)
	}
	name := filepath.Join(openVolume(t, s, "copy"), "row")
	text, err := os.ReadFile(name)
	info, serr := os.Stat(name)
	if err != nil || serr != nil || string(text) != "1" || info.Mode().Perm() != 0o640 {
		t.Fatalf("got %q, %v, %v; want what was there", text, err, serr)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != owner+1 || st.Gid != owner+2 {
		t.Errorf("got %d:%d; want its owner", st.Uid, st.Gid)
	}
	root, err := os.Stat(filepath.Dir(name))
	if err != nil || root.Mode().Perm() != 0o700 || root.Sys().(*syscall.Stat_t).Uid != owner {
		t.Errorf("got %v, %v; want it the owner's", root, err)
	}
}

// TestShow shows directories of a volume, which no link leads out of.
func TestShow(t *testing.T) {
	dir, open := newStore(t)
	s := open()
	if err := s.Create("db", Spec{Bytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	data := openVolume(t, s, "db")
	if _, err := s.Show("c", 0, users.Range{}, "db", "a/b", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v; want none made without an owner", err)
	}
	at, err := s.Show("c", 1, users.Range{}, "db", "a/b", &Owner{UID: 1000, GID: 1001})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(data, "a", "b"))
	if st := info.Sys().(*syscall.Stat_t); err != nil || info.Mode().Perm() != 0o700 || st.Uid != s.cfg.Users.Base+1000 || st.Gid != s.cfg.Users.Base+1001 {
		t.Errorf("got %v, %d:%d, %v; want it its owner's alone", info.Mode(), st.Uid, st.Gid, err)
	}
	if info, err = os.Stat(filepath.Join(data, "a")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v; want that everybody can pass", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(data, "a", "b", "file"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	// what is shown stays shown, whatever becomes of its path
	if err := errors.Join(os.Rename(filepath.Join(data, "a", "b"), filepath.Join(data, "c")), os.Symlink("/etc", filepath.Join(data, "a", "b")), os.Symlink("/", filepath.Join(data, "root"))); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(at, "file")); err != nil || string(text) != "1" {
		t.Errorf("got %q, %v", text, err)
	}
	for pattern, want := range map[string]string{"[ac]": "a c", "?": "a c", "a/*": "", "root/*": "", "x*": "", "c": "c", "c/*": ""} {
		if got, err := s.Match("db", pattern); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, %v; want %q", pattern, got, err, want)
		}
	}
	for _, bad := range []string{"a/b", "root/etc", "c/file", "a/b/../../../.."} {
		at, err := s.Show("c", 2, users.Range{}, "db", bad, &Owner{})
		if bad == "a/b/../../../.." { // is the volume itself
			if _, serr := os.Lstat(filepath.Join(at, "c")); err != nil || serr != nil {
				t.Errorf("%s: got %v, %v; want the volume", bad, err, serr)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s leads out of the volume", bad)
		}
	}
	for range 2 {
		if err := s.Hide("c"); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, shown)); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v; want nothing left", left, err)
	}
	if _, err := os.Stat(filepath.Join(data, "c", "file")); err != nil {
		t.Errorf("got %v; want what is in the volume kept", err)
	}
	if err := s.Remove("db"); err != nil {
		t.Fatal(err)
	}
}

// TestShowShifted shows a volume to containers with different users, each of which
// sees it as its own, while on disk it stays what it was.
func TestShowShifted(t *testing.T) {
	dir, open := newStore(t)
	s := open()
	if err := s.Create("db", Spec{Bytes: 16 << 20, Shared: true}); err != nil {
		t.Fatal(err)
	}
	data := openVolume(t, s, "db")
	for n, r := range []users.Range{{Base: 0x78000000, Size: users.Size}, {Base: 0x78010000, Size: users.Size}, {}} {
		id := "c" + string(rune('0'+n))
		at, err := s.Show(id, 0, r, "db", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		base := max(r.Base, onDisk.Base)
		if r.Base == 0 {
			base = onDisk.Base
		}
		if info, err := os.Stat(at); err != nil || info.Sys().(*syscall.Stat_t).Uid != base+2000 {
			t.Errorf("got %v, %v; want it to belong to %d", info, err, base+2000)
		}
		for _, passed := range []string{filepath.Join(dir, shown, id)} {
			if info, err := os.Stat(passed); err != nil || info.Mode().Perm() != 0o710 || info.Sys().(*syscall.Stat_t).Gid != base {
				t.Errorf("%s: got %v, %v; want that root of the container alone passes", passed, info, err)
			}
		}
		file := filepath.Join(at, id)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chown(file, int(base)+2000, int(base)+2000)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(data, id)); err != nil || info.Sys().(*syscall.Stat_t).Uid != owner {
			t.Errorf("got %v, %v; want %d on disk", info, err, owner)
		}
		if err := s.Hide(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove("db"); err != nil {
		t.Fatal(err)
	}
}

// TestWhatACrashLeft begins with a volume half made and one half deleted.
func TestWhatACrashLeft(t *testing.T) {
	dir, open := newStore(t)
	s := open()
	if err := errors.Join(s.Create("half", Spec{Bytes: 32 << 20}), os.Remove(filepath.Join(dir, "half", whole)), os.MkdirAll(filepath.Join(dir, trash+"x", "y"), 0o700)); err != nil {
		t.Fatal(err)
	}
	s = open()
	if _, err := s.open("half"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v; want no half volume", err)
	}
	if err := s.Create("half", Spec{Bytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	if names, err := s.List(); err != nil || !slices.Equal(names, []string{"half"}) {
		t.Errorf("got %v, %v", names, err)
	}
	if _, err := os.Stat(filepath.Join(dir, trash+"x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v; want it deleted", err)
	}
}

func TestNamesLeadNowhereElse(t *testing.T) {
	s := &Store{cfg: Config{Dir: t.TempDir()}}
	for _, name := range []string{"", "..", "a/b", ".hidden", "a b", "-x"} {
		if err := s.Create(name, Spec{Bytes: 1 << 20}); err == nil {
			t.Errorf("%q was taken", name)
		}
		if err := s.Remove(name); err == nil {
			t.Errorf("%q was removed", name)
		}
	}
}
