package rootfs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cupola/rootfs/root"
	"cupola/rootfs/stack"
)

// TestReplace replaces a stack that a container has mounted: the container keeps its files,
// new ones have the new files, and the old ones go with the last container.
func TestReplace(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{})
	build := func(s *Store, file string) {
		t.Helper()
		_, err := s.Stacks.Add(t.Context(), stack.Spec{Name: "mine", Replace: true}, func(_ context.Context, dir string) ([]byte, error) {
			if err := os.MkdirAll(filepath.Join(dir, "usr", "bin"), 0o755); err != nil {
				return nil, err
			}
			return []byte(file), os.WriteFile(filepath.Join(dir, "usr", "bin", file), nil, 0o755)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(s *Store, want string) {
		t.Helper()
		st, ok := s.Stacks.Get("mine")
		for _, file := range []string{"one", "two", "three"} {
			if got := st.HasFile("usr/b*/" + file); got != (file == want) || !ok {
				t.Errorf("the stack has the file %s: %t; want only %s", file, got, want)
			}
		}
		if lock, err := s.Stacks.Lock("mine"); err != nil || string(lock) != want {
			t.Errorf("got the lock %q, %v; want %s", lock, err, want)
		}
	}
	dirs := func(want ...string) {
		t.Helper()
		found, _ := filepath.Glob(s.store.Path(stack.Dir, "mine*"))
		for i := range found {
			found[i] = filepath.Base(found[i])
		}
		if !slices.Equal(found, want) {
			t.Errorf("got the directories %v; want %v", found, want)
		}
	}
	build(s, "one")
	mounted, err := s.Mount(t.Context(), root.Request{ID: "a", Stack: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	build(s, "two")
	has(s, "two")
	dirs("mine", "mine~2")
	if _, err := os.Stat(filepath.Join(mounted.Path, "usr/bin/one")); err != nil {
		t.Errorf("got %v; want the container to keep its files", err)
	}
	again, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	has(again, "two")
	if err := again.Stacks.Remove("mine"); err == nil {
		t.Error("a stack was removed while a container has its replaced files")
	}
	build(again, "three")
	dirs("mine", "mine~3")
	if err := again.Unmount(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	last, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	has(last, "three")
	dirs("mine~3")
	if err := last.Stacks.Remove("mine"); err != nil {
		t.Error(err)
	}
	dirs()
}
