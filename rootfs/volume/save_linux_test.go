package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/rootfs/disk"
)

// TestMain lets the test's program be a holder, or a daemon that a test kills
// while it saves.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "hold" {
		within, err := time.ParseDuration(os.Args[3])
		if err == nil {
			err = Hold(os.Args[2], within, os.Stdin, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "save" {
		saveForEver(os.Args[2])
	}
	os.Exit(m.Run())
}

func holder() []string { return []string{"/proc/self/exe", "hold"} }

// saveForEver is a daemon in the middle of a backup.
func saveForEver(dir string) {
	s := &Store{cfg: Config{Dir: filepath.Dir(dir), Disks: &disk.Disks{}, Holder: holder()}}
	if err := s.Save(context.Background(), filepath.Base(dir), time.Hour, stuck{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// stuck tells of the first write, and never ends it.
type stuck struct{}

func (stuck) Write([]byte) (int, error) {
	fmt.Println("saving")
	select {}
}

func (s *Store) needLoop(t *testing.T) {
	t.Helper()
	s.cfg.Holder = holder()
	if m, why := s.cfg.Disks.Method(); m == disk.Plain {
		t.Skipf("disks are held by %s: %s", m, why)
	}
}

// writing writes to a file, and tells when it has.
func writing(name, text string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- os.WriteFile(name, []byte(text), 0o600) }()
	return done
}

// hooked calls a function before the first write.
type hooked struct {
	io.Writer
	hook func()
}

func (h *hooked) Write(p []byte) (int, error) {
	if h.hook != nil {
		h.hook()
		h.hook = nil
	}
	return h.Writer.Write(p)
}

// TestAVolumeIsSavedAsItWasAtOneMoment writes to a volume while it is saved: the
// writer waits, and goes on afterwards.
func TestAVolumeIsSavedAsItWasAtOneMoment(t *testing.T) {
	_, open := newStore(t)
	s := open()
	s.needLoop(t)
	spec := Spec{Bytes: 64 << 20, Shared: true}
	if err := s.Create("db", spec); err != nil {
		t.Fatal(err)
	}
	at := openVolume(t, s, "db")
	row, late := filepath.Join(at, "row"), filepath.Join(at, "late")
	hole := filepath.Join(at, "hole")
	if err := errors.Join(os.WriteFile(row, bytes.Repeat([]byte("1"), 2<<20), 0o640), os.Chown(row, owner, owner), os.WriteFile(hole, nil, 0o600), os.Truncate(hole, 1<<30)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "db.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var wrote <-chan error
	err = s.Save(t.Context(), "db", time.Minute, &hooked{file, func() {
		wrote = writing(late, "late")
		select {
		case err := <-wrote:
			t.Errorf("the volume was written to: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if err := errors.Join(s.Remove("db"), s.Restore(t.Context(), "db", spec, file)); err != nil {
		t.Fatal(err)
	}
	at = openVolume(t, s, "db")
	st := func(name string) *syscall.Stat_t {
		info, err := os.Lstat(filepath.Join(at, name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t)
	}
	if r := st("row"); r.Uid != owner || r.Gid != owner || r.Mode&0o777 != 0o640 || r.Size != 2<<20 {
		t.Errorf("got %+v; want its owner's, 0640, 2 MiB", r)
	}
	if r := st("."); r.Mode&0o777 != 0o777 || r.Uid != owner {
		t.Errorf("got %+v; want a directory for all", r)
	}
	if h := st("hole"); h.Size != 1<<30 || h.Blocks*512 > 1<<20 {
		t.Errorf("got %d bytes in %d blocks; want a hole of 1 GiB", h.Size, h.Blocks)
	}
	if _, err := os.Lstat(filepath.Join(at, "late")); err == nil {
		t.Error("it has what was written later")
	}
}

// TestASaveIsBounded has the time over before all has been copied: it is an
// error, and the volume is let go of.
func TestASaveIsBounded(t *testing.T) {
	_, open := newStore(t)
	s := open()
	s.needLoop(t)
	if err := s.Create("db", Spec{Bytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	at := openVolume(t, s, "db")
	if err := os.WriteFile(filepath.Join(at, "row"), make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var free error
	err := s.Save(t.Context(), "db", 200*time.Millisecond, &hooked{io.Discard, func() { free = <-writing(filepath.Join(at, "late"), "x") }})
	if err == nil || !strings.Contains(err.Error(), "200ms") || free != nil {
		t.Errorf("got %v, and writing %v; want the save to fail and the writer to go on", err, free)
	}
	if err := s.Save(t.Context(), "none", time.Minute, io.Discard); !errors.Is(err, ErrNone) {
		t.Errorf("got %v; want %v", err, ErrNone)
	}
}

// TestAKilledSaveLetsGo kills who saves, then who holds, and then both: the
// volume is let go of at once, and in the last case when it is opened again.
func TestAKilledSaveLetsGo(t *testing.T) {
	dir, open := newStore(t)
	s := open()
	s.needLoop(t)
	if err := s.Create("db", Spec{Bytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	at := openVolume(t, s, "db")
	if err := os.WriteFile(filepath.Join(at, "row"), make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, both := range []bool{false, true} {
		cmd := exec.Command("/proc/self/exe", "save", filepath.Join(dir, "db"))
		out, err := cmd.StdoutPipe()
		cmd.Stderr = os.Stderr
		if err := errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("saving\n"))); err != nil {
			t.Fatal(err)
		}
		wrote := writing(filepath.Join(at, "late"), "x")
		select {
		case err := <-wrote:
			t.Fatalf("the volume was not held: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		if both {
			// The holder first, or it would let go.
			killChildren(t, cmd.Process.Pid)
		}
		cmd.Process.Kill()
		cmd.Wait()
		if both {
			select {
			case err := <-wrote:
				t.Fatalf("nobody was left to let go: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			open()
		}
		select {
		case err := <-wrote:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the volume is still held")
			if err := disk.Thaw(filepath.Join(dir, "db")); err != nil {
				t.Error(err)
			}
		}
	}
}

func killChildren(t *testing.T, pid int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range tasks {
		more, rerr := os.ReadFile(name)
		text, err = append(append(text, ' '), more...), errors.Join(err, rerr)
	}
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, field := range strings.Fields(string(text)) {
		var child int
		if _, err := fmt.Sscan(field, &child); err == nil && syscall.Kill(child, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("there is no holder")
	}
}
