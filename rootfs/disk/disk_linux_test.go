package disk

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"cupola/runtime/thread"
)

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
}

func newDisks(t testing.TB) (d *Disks, base string) {
	t.Helper()
	base = t.TempDir()
	d, err := New(filepath.Join(base, "templates"), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return d, base
}

// makeDisk makes a disk that is gone after the test.
func makeDisk(t testing.TB, d *Disks, dir string, s Size) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := d.Create(dir, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Remove(dir); err != nil {
			t.Error(err)
		}
	})
}

// asContainer runs do without the capability that quotas spare, as overlayfs does for containers.
func asContainer(t testing.TB, do func() error) error {
	t.Helper()
	return thread.Throwaway("rootfs", func() error {
		if err := dropResource(); err != nil {
			return fmt.Errorf("drop CAP_SYS_RESOURCE: %v", err)
		}
		return do()
	})
}

// fill writes until it may not.
func fill(t testing.TB, name string) (sum int64, err error) {
	t.Helper()
	return sum, asContainer(t, func() error {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		defer f.Close()
		block := make([]byte, 64<<10)
		for sum < 1<<30 {
			n, err := f.Write(block)
			sum += int64(n)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func TestSizes(t *testing.T) {
	needRoot(t)
	d, base := newDisks(t)
	m, why := d.Method()
	if m == Plain {
		t.Skip(why)
	}
	for _, mb := range []int64{4, 20, 64, 300} {
		dir := filepath.Join(base, "d"+strconv.FormatInt(mb, 10))
		makeDisk(t, d, dir, Size{Bytes: mb * mib})
		if used, err := d.Used(dir); err != nil || used > 64<<10 {
			t.Errorf("%d MiB: got %d bytes used, %v; want next to none", mb, used, err)
		}
		got, err := fill(t, filepath.Join(dir, Data, "f"))
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			t.Errorf("%d MiB: got %v; want ENOSPC or EDQUOT", mb, err)
		}
		// the image is a grain and a little too large at most, and never too small but for block maps
		if got < mb*mib-mib/2 || got > mb*mib+grain+mib {
			t.Errorf("%d MiB: got %d bytes written", mb, got)
		}
		if used, err := d.Used(dir); err != nil || used < got || used > got+mib {
			t.Errorf("%d MiB: got %d bytes used, %v; want %d", mb, used, err, got)
		}
	}
}

func TestInodes(t *testing.T) {
	needRoot(t)
	d, base := newDisks(t)
	if m, why := d.Method(); m == Plain {
		t.Skip(why)
	}
	dir := filepath.Join(base, "c")
	makeDisk(t, d, dir, Size{Bytes: 64 * mib, Inodes: 2000})
	n := 0
	err := asContainer(t, func() (err error) {
		for ; err == nil && n < 10_000; n++ {
			err = os.Mkdir(filepath.Join(dir, Data, strconv.Itoa(n)), 0o755)
		}
		return err
	})
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) || n < 1900 || n > 2100 {
		t.Errorf("got %v after %d directories; want no space after about 2000", err, n)
	}
}

func TestRemove(t *testing.T) {
	needRoot(t)
	d, base := newDisks(t)
	dir := filepath.Join(base, "c")
	makeDisk(t, d, dir, Size{Bytes: 8 * mib})
	busy, err := os.Open(filepath.Join(dir, Data))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // with someone still in it, and once more when all is gone
		if err := d.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
	busy.Close()
	if loops, err := Loops(base); err != nil || len(loops) > 0 {
		t.Errorf("got %v, %v after the last user left; want no loop device", loops, err)
	}
}

// apart runs a shell in a mount namespace with a copy of all mounts, until the test ends.
func apart(t *testing.T, script string) {
	t.Helper()
	ready, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	cmd := exec.Command("sh", "-c", script+" && echo ready && exec sleep 60")
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	err = cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func loopDisk(t *testing.T, d *Disks, dir string, bytes int64) {
	t.Helper()
	makeDisk(t, d, dir, Size{Bytes: bytes})
	if _, err := os.Stat(filepath.Join(dir, Image)); err != nil {
		t.Skip("disks are no loop devices here")
	}
}

// TestGrowPastCopies grows a disk whose mount, and so its loop device, another program keeps a copy of.
func TestGrowPastCopies(t *testing.T) {
	needRoot(t)
	d, base := newDisks(t)
	dir := filepath.Join(base, "c")
	loopDisk(t, d, dir, 8*mib)
	kept := filepath.Join(dir, Data, "kept")
	if err := os.WriteFile(kept, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	apart(t, "true")
	img := filepath.Join(dir, Image)
	for _, size := range []int64{32 * mib, 64 * mib} {
		if err := errors.Join(os.Truncate(img, size), d.growCopy(dir, size)); err != nil {
			t.Fatal(err)
		}
		if n, err := fileSystemBytes(img); n != size || err != nil {
			t.Errorf("got %d bytes, %v; want %d", n, err, size)
		}
	}
	if content, err := os.ReadFile(kept); err != nil || string(content) != "1" {
		t.Errorf("got %q, %v; want what was written", content, err)
	}
	if err := os.WriteFile(kept, []byte("2"), 0o600); err != nil {
		t.Error(err)
	}
}

// TestGrowInUse leaves a disk alone that something has mounted for itself.
func TestGrowInUse(t *testing.T) {
	needRoot(t)
	d, base := newDisks(t)
	dir, other := filepath.Join(base, "c"), filepath.Join(base, "other")
	loopDisk(t, d, dir, 8*mib)
	data := filepath.Join(dir, Data)
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	apart(t, fmt.Sprintf("mount --bind %s %s && umount %[1]s", data, other))
	if err := d.growCopy(dir, 32*mib); !errors.Is(err, errInUse) {
		t.Errorf("got %v; want %v", err, errInUse)
	}
	if err := os.WriteFile(filepath.Join(data, "more"), []byte("1"), 0o600); err != nil {
		t.Error(err)
	}
}

// TestGrowWritten leaves a disk alone that something writes to, and takes up one that a killed daemon left read-only.
func TestGrowWritten(t *testing.T) {
	needRoot(t)
	d, base := newDisks(t)
	dir := filepath.Join(base, "c")
	loopDisk(t, d, dir, 8*mib)
	data := filepath.Join(dir, Data)
	f, err := os.Create(filepath.Join(data, "open"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.growCopy(dir, 32*mib); !errors.Is(err, errInUse) {
		t.Errorf("got %v; want %v", err, errInUse)
	}
	if _, err := f.WriteString("1"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(f.Close(), remount(data, syscall.MS_RDONLY), d.Open(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "more"), []byte("1"), 0o600); err != nil {
		t.Error(err)
	}
}

func TestMountedElsewhere(t *testing.T) {
	const mounts = "30 1 0:26 / / rw - ext4 /dev/root rw\n31 30 7:5 / /v/disk rw,noatime - ext4 /dev/loop5 rw\n32 30 7:6 /sub /v/other rw - ext4 /dev/loop6 rw\n"
	for minor, want := range map[uint32]bool{4: false, 5: false, 6: true} {
		if got := mountedElsewhere(mounts, unix.Mkdev(7, minor), "/v/disk"); got != want {
			t.Errorf("loop%d: got %t; want %t", minor, got, want)
		}
	}
}

// TestKilledProbe finds what a daemon killed in New leaves.
func TestKilledProbe(t *testing.T) {
	needRoot(t)
	d, base := newDisks(t)
	makeDisk(t, d, filepath.Join(base, "templates", probePrefix+"1"), Size{Bytes: 4 * mib})
	if _, err := New(filepath.Join(base, "templates"), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(base, "templates", probePrefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("got %q, %v; want no probe", left, err)
	}
	if loops, err := Loops(base); err != nil || len(loops) > 0 {
		t.Errorf("got %v, %v; want no loop device", loops, err)
	}
}

// TestPlain needs no privilege: a disk without a limit counts its files.
func TestPlain(t *testing.T) {
	t.Parallel()
	d := &Disks{method: Plain, log: slog.New(slog.DiscardHandler)}
	dir := t.TempDir()
	if err := d.Create(dir, Size{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Data, "f"), make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if used, err := d.Used(dir); err != nil || used < 100_000 || used > 200_000 {
		t.Errorf("got %d, %v; want about 100 000", used, err)
	}
}

// TestTemplates bounds how many sizes are kept.
func TestTemplates(t *testing.T) {
	t.Parallel()
	if _, err := findMkfs(); err != nil {
		t.Skip(err)
	}
	d := &Disks{dir: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	for n := range int64(maxTemplates + 5) {
		f, err := d.template(Size{Bytes: 4*mib + n*4096, Inodes: 100})
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	all, err := filepath.Glob(filepath.Join(d.dir, "*"))
	if err != nil || len(all) > maxTemplates {
		t.Errorf("got %d templates, %v; want at most %d", len(all), err, maxTemplates)
	}
}

// What goes with its container need not reach the disk, nor bypass the page cache where that costs the container nothing; what
// outlives it has barriers, and lies in the page cache once.
func TestBarriers(t *testing.T) {
	needRoot(t)
	d, base := newDisks(t)
	if m, why := d.Method(); m != Loop {
		t.Skip(m, why)
	}
	for _, durable := range []bool{false, true} {
		dir := filepath.Join(base, fmt.Sprintf("durable-%t", durable))
		makeDisk(t, d, dir, Size{Bytes: 20 * mib, Durable: durable})
		for _, when := range []string{"new", "opened again"} {
			mounts, err := os.ReadFile("/proc/self/mounts")
			if err != nil {
				t.Fatal(err)
			}
			before, after, found := strings.Cut(string(mounts), " "+filepath.Join(dir, Data)+" ext4 ")
			options, _, _ := strings.Cut(after, "\n")
			if !found || strings.Contains(options, "nobarrier") == durable {
				t.Errorf("durable %t, %s: got options %q", durable, when, options)
			}
			if got, want := isDirect(t, before[strings.LastIndexByte(before, '\n')+1:]), durable || chargesLoops(); got != want {
				t.Errorf("durable %t, %s: direct I/O %t; want %t", durable, when, got, want)
			}
			if err := errors.Join(d.Close(dir), d.Open(dir)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// isDirect reports whether a loop device bypasses the page cache.
func isDirect(t *testing.T, device string) bool {
	t.Helper()
	dio, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "loop/dio"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dio)) == "1"
}

// A program that began while a disk was mounted keeps a copy of the mount. The disk, closed and opened again, has what was
// written, and is one file system for both.
func TestOpenedAgainBesideACopy(t *testing.T) {
	needRoot(t)
	d, base := newDisks(t)
	if m, why := d.Method(); m != Loop {
		t.Skip(m, why)
	}
	dir := filepath.Join(base, "disk")
	makeDisk(t, d, dir, Size{Bytes: 20 * mib, Durable: true})
	file := filepath.Join(dir, Data, "file")
	copied := exec.Command("unshare", "--mount", "sh", "-c", "echo; read stop")
	stop, err := copied.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	ready, err := copied.StdoutPipe()
	if err == nil {
		err = copied.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { stop.Close(); _ = copied.Wait() }() // without a line to read it fails
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"1", "2"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Close(dir), d.Open(dir)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("got %q, %v; want %s, which was written before", got, err, text)
		}
	}
}
