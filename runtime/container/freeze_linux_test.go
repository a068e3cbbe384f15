package container

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFrozenContainerGoesOnAfterThaw(t *testing.T) {
	eachKind(t, testFrozenContainerGoesOnAfterThaw)
}

func testFrozenContainerGoesOnAfterThaw(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	_, r := b.start(t, b.spec("app", "catch"))
	waitLine(t, r, "ready\n")
	if b.Frozen("app") {
		t.Fatal("it is frozen from the start")
	}
	if err := b.Freeze(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	second := b.reopen(t) // the next daemon
	if !second.Frozen("app") {
		t.Fatal("the next Engine finds it thawed")
	}
	if err := second.Signal("app", syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	pids := second.tree.pids(second.place("app"))
	for _, pid := range pids {
		if s, err := readStat(pid); err != nil || s.zombie {
			t.Errorf("process %d: got %+v, %v; want it stopped, and there", pid, s, err)
		}
	}
	if len(pids) < 2 {
		t.Errorf("got processes %v; want the init and the app", pids)
	}
	second.Reclaim("app")
	if err := second.Thaw("app"); err != nil {
		t.Fatal(err)
	}
	if exit := b.wait(t, "app"); exit.Code != 7 || second.Frozen("app") {
		t.Errorf("got %+v; want the signal to have come after the thaw", exit)
	}
}

func TestFrozenContainerIsRemoved(t *testing.T) { eachKind(t, testFrozenContainerIsRemoved) }

func testFrozenContainerIsRemoved(t *testing.T, kind Kind) {
	b := newBench(t, kind)
	_, r := b.start(t, b.spec("app", "sleep"))
	waitLine(t, r, "ready\n")
	if err := b.Freeze(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	if states, err := b.List(); err != nil || len(states) != 0 {
		t.Errorf("got %v, %v; want nothing left", states, err)
	}
	if err := b.Thaw("app"); err != nil || b.Frozen("app") {
		t.Errorf("got %v; want no error for what is gone", err)
	}
}

func TestUnifiedFreeze(t *testing.T) {
	tree := unified(t, "")
	e := &Engine{tree: tree, places: map[string]string{"app": "app"}}
	if err := e.Freeze(t.Context(), "app"); !errors.Is(err, ErrNoFreezer) {
		t.Errorf("got %v; want %v", err, ErrNoFreezer)
	}
	dir := tree.dir("", "app")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	events := func(text string) {
		for name, text := range map[string]string{"cgroup.events": text, "cgroup.freeze": "0\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	events("populated 1\nfrozen 1\n")
	if err := e.Freeze(t.Context(), "app"); err != nil || !e.Frozen("app") {
		t.Errorf("got %v, frozen %t; want it frozen", err, e.Frozen("app"))
	}
	if err := e.Thaw("app"); err != nil || e.Frozen("app") {
		t.Errorf("got %v, frozen %t; want it thawed", err, e.Frozen("app"))
	}
	events("populated 1\nfrozen 0\n") // a process does not stop
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Freeze(ctx, "app"); !errors.Is(err, context.Canceled) || e.Frozen("app") {
		t.Errorf("got %v, frozen %t; want it to go on", err, e.Frozen("app"))
	}
}
