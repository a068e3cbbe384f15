package files

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cupola/runtime/lrp"
)

func TestMounts(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	s, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, id := range []string{"a", "b"} {
			if err := s.Remove(id); err != nil {
				t.Error(err)
			}
		}
		if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), s.cfg.Dir) {
			t.Errorf("got mounts left in %s, %v", s.cfg.Dir, err)
		}
	})
	for _, id := range []string{"a", "b"} {
		if err := s.Create(id, 1<<20, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Create("a", 1<<20, false); err == nil {
		t.Error("got no error for a second memory")
	}
	if err := s.Create("../x", 1<<20, false); err == nil {
		t.Error("got no error for a bad ID")
	}
	if err := s.Replace("b", "tree", 2000, []lrp.File{{Path: "d/f", Content: make([]byte, 100<<10)}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.Path("b", "tree/d/f"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 1<<20 || st.Gid != 1<<20+2000 || info.Mode().Perm() != 0o440 {
		t.Errorf("got %d:%d %s; want root and the group of the container", st.Uid, st.Gid, info.Mode())
	}
	if n, err := s.Used("b"); err != nil || n < 100<<10 || n > 1<<20 {
		t.Errorf("got %d bytes, %v; want those of the file", n, err)
	}
	if ids, err := s.List(); err != nil || !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("got %v, %v", ids, err)
	}
	again, err := New(s.cfg) // another daemon's
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Remove("a"); err != nil {
		t.Error(err)
	}
	if err := again.Replace("b", "tree", 2000, nil); err != nil {
		t.Error(err)
	}
}

// BenchmarkContainer is what a container's memory costs its start and its end.
func BenchmarkContainer(b *testing.B) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		b.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	s, err := New(Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	files := []lrp.File{{Path: "instance.crt", Content: make([]byte, 2000)}, {Path: "instance.key", Content: make([]byte, 1700)}}
	for b.Loop() {
		err := s.Create("c", 1<<20, false)
		for _, tree := range []string{"credentials", "authority"} {
			if err == nil {
				err = s.Replace("c", tree, 2000, files)
			}
		}
		if err == nil {
			err = s.Keep("c", "program.json", make([]byte, 8000))
		}
		if err = errors.Join(err, s.Remove("c")); err != nil {
			b.Fatal(err)
		}
	}
}
