package store

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"cupola/rootfs/tree"
)

// TestLeases holds that what is leased or mounted is in use until the last lease on it ends.
func TestLeases(t *testing.T) {
	t.Parallel()
	s := &Store{Mounted: func() (map[string]bool, error) { return map[string]bool{"mounted": true}, nil }}
	inUse := func() (names []string) {
		t.Helper()
		if err := s.Collect(func(used func(string) bool) error {
			for _, name := range []string{"a", "b", "mounted"} {
				if used(name) {
					names = append(names, name)
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return names
	}
	first, err := s.Hold(func() ([]string, error) { return []string{"a", "b"}, nil })
	if err != nil {
		t.Fatal(err)
	}
	second := s.HoldNames("b")
	for _, step := range []struct {
		do   func()
		want []string
	}{
		{func() {}, []string{"a", "b", "mounted"}},
		{first, []string{"b", "mounted"}},
		{second, []string{"mounted"}},
	} {
		step.do()
		if got := inUse(); !slices.Equal(got, step.want) {
			t.Errorf("got %q in use; want %q", got, step.want)
		}
	}
	missing := errors.New("missing")
	if release, err := s.Hold(func() ([]string, error) { return []string{"a"}, missing }); !errors.Is(err, missing) || release != nil || slices.Contains(inUse(), "a") {
		t.Errorf("got %v; want no lease on what was not found", err)
	}
	s.Mounted = func() (map[string]bool, error) { return nil, missing }
	if err := s.Collect(func(func(string) bool) error { t.Error("it collects without knowing what is mounted"); return nil }); !errors.Is(err, missing) {
		t.Errorf("got %v; want %v", err, missing)
	}
}

// TestNothingIsLeasedDuringACollection holds that a lease waits for a collection under way, which may remove what it finds.
func TestNothingIsLeasedDuringACollection(t *testing.T) {
	t.Parallel()
	s := &Store{Mounted: func() (map[string]bool, error) { return nil, nil }}
	removed, held := false, make(chan bool)
	if err := s.Collect(func(used func(string) bool) error {
		go func() {
			_, _ = s.Hold(func() ([]string, error) {
				held <- removed
				return nil, nil
			})
		}()
		select {
		case <-held:
			t.Error("the lease did not wait")
		case <-time.After(10 * time.Millisecond):
		}
		removed = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !<-held {
		t.Error("the lease found what the collection removed")
	}
}

// TestSweep holds that only what keep does not want goes.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := &Store{Dir: t.TempDir()}
	for _, name := range []string{"trash", "dir", "dir/keep", "dir/go"} {
		if err := os.Mkdir(s.Path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.Trash = tree.NewTrash(s.Path("trash"), slog.New(slog.DiscardHandler))
	if err := s.Sweep(t.Context(), "dir", func(name string, age time.Duration) bool { return name == "keep" && age < time.Hour }); err != nil {
		t.Fatal(err)
	}
	s.Trash.Wait()
	for dir, want := range map[string]int{"dir": 1, "trash": 0} {
		if left, err := os.ReadDir(s.Path(dir)); err != nil || len(left) != want {
			t.Errorf("%s: got %v, %v; want %d entries", dir, left, err, want)
		}
	}
}
