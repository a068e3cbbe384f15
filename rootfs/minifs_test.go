package rootfs

import (
	"path/filepath"
	"testing"

	"cupola/rootfs/root"
)

// TestMinifsChanges keeps an old tree as long as a container has it mounted.
func TestMinifsChanges(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDs: testIDs, Tools: []string{"ls"}})
	if _, err := s.Mount(t.Context(), root.Request{ID: "old", Stack: "minifs", DiskBytes: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		trees, err := filepath.Glob(s.store.Path("stacks", ".minifs-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(trees)
	}
	cfg := s.cfg
	cfg.Tools = []string{"ls", "cat"}
	for _, want := range []int{2, 1} {
		next, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := count(); got != want {
			t.Errorf("got %d trees; want %d", got, want)
		}
		if err := next.Unmount(t.Context(), "old"); err != nil {
			t.Error(err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
}
