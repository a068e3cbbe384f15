package cell

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"testing"

	"cupola/rootfs/layer"
	"cupola/rootfs/root"
	"cupola/runtime/container"
)

// seams are what a cell joins: fakes, or the real packages.
type seams struct {
	Containers
	Network Network
	RootFS  RootFS
	args    []string // of a process that goes on until it is signalled
	layers  []layer.Layer
}

func TestFakesBehave(t *testing.T) {
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			m := newMachine(t)
			b.test(t, seams{Containers: m, Network: fakeNetwork{m}, RootFS: fakeRoots{m}})
		})
	}
}

// behaviours are what a cell relies on, of fakes and real packages alike.
var behaviours = []struct {
	name string
	test func(*testing.T, seams)
}{
	{"nothing is taken away", func(t *testing.T, s seams) {
		err := errors.Join(s.Remove(t.Context(), "x"), s.Network.Release(t.Context(), "x"), s.RootFS.Unmount(t.Context(), "x"))
		if err != nil {
			t.Errorf("got %v; want no error", err)
		}
	}},
	{"nothing is found", func(t *testing.T, s seams) {
		_, waitErr := s.Wait(t.Context(), "x")
		_, statsErr := s.Stats("x")
		_, openErr := s.RootFS.Open("x", "/f")
		_, execErr := s.Exec(t.Context(), "x", container.Process{Args: []string{"x"}}, container.Stdio{})
		if waitErr == nil || statsErr == nil || openErr == nil || execErr == nil || s.Signal("x", syscall.SIGTERM) == nil {
			t.Error("got no error for a container that is not there; want one")
		}
	}},
	{"networks", testNetworks},
	{"files", testFiles},
	{"processes", testProcesses},
}

func testNetworks(t *testing.T, s seams) {
	a, err := s.Network.Acquire(t.Context(), "a")
	again, err2 := s.Network.Acquire(t.Context(), "a")
	b, err3 := s.Network.Acquire(t.Context(), "b")
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	if a != again || a.Address == b.Address || a.NetNS == b.NetNS || !a.Gateway.IsValid() {
		t.Errorf("got %v, %v, %v; want one for each container", a, again, b)
	}
	c, err := s.Network.Share(t.Context(), "c", "a")
	if err != nil || c != a {
		t.Errorf("got %v, %v; want a's %v", c, err, a)
	}
	if ids, err := s.Network.List(); err != nil || len(ids) != 3 {
		t.Errorf("got %v, %v; want a, b and c", ids, err)
	}
	if err := errors.Join(s.Network.Release(t.Context(), "a"), s.Network.Release(t.Context(), "b")); err != nil {
		t.Error(err)
	}
	if _, err := s.Network.Share(t.Context(), "d", "a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for a share of what is released; want %v", err, os.ErrNotExist)
	}
	if d, err := s.Network.Share(t.Context(), "d", "c"); err != nil || d != a {
		t.Errorf("got %v, %v; want what c still has, %v", d, err, a)
	}
	if err := errors.Join(s.Network.Release(t.Context(), "c"), s.Network.Release(t.Context(), "d")); err != nil {
		t.Error(err)
	}
	if ids, err := s.Network.List(); err != nil || len(ids) != 0 {
		t.Errorf("got %v, %v; want nothing", ids, err)
	}
}

func testFiles(t *testing.T, s seams) {
	req := root.Request{ID: "a", Stack: "minifs", DiskBytes: 32 << 20, Inodes: inodes}
	if _, err := s.RootFS.Mount(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RootFS.Mount(t.Context(), req); err == nil {
		t.Error("mounted twice; want an error")
	}
	if err := s.RootFS.WriteFile("a", "/some/where/f", []byte("content"), 0o644, 0, 0); err != nil {
		t.Error(err)
	}
	if got := readRoot(t, s, "/some/where/f"); got != "content" {
		t.Errorf("got %q; want content", got)
	}
	if _, err := s.RootFS.Open("a", "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v; want ErrNotExist", err)
	}
	if used, err := s.RootFS.DiskUsage("a"); err != nil || used <= 0 {
		t.Errorf("got %d, %v; want some bytes used", used, err)
	}
	if ids, err := s.RootFS.List(); err != nil || !slices.Equal(ids, []string{"a"}) {
		t.Errorf("got %v, %v; want a", ids, err)
	}
	if err := s.RootFS.Unmount(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if ids, err := s.RootFS.List(); err != nil || len(ids) != 0 {
		t.Errorf("got %v, %v; want nothing", ids, err)
	}
}

func readRoot(t *testing.T, s seams, path string) string {
	t.Helper()
	f, err := s.RootFS.Open("a", path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		t.Error(err)
	}
	return string(content)
}

func testProcesses(t *testing.T, s seams) {
	net, err := s.Network.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	root, err := s.RootFS.Mount(t.Context(), root.Request{ID: "a", Stack: "minifs", Layers: s.layers, DiskBytes: 32 << 20, Inodes: inodes})
	if err != nil {
		t.Fatal(err)
	}
	process := container.Process{Args: s.args, Cwd: "/", UID: 2000, GID: 2000}
	spec := container.Spec{ID: "a", Rootfs: root.Path, Hostname: "a", Process: process, NetNS: net.NetNS}
	started, err := s.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), spec); err == nil {
		t.Error("started twice; want an error")
	}
	wantListed(t, s, started)
	if _, err := s.Stats("a"); err != nil {
		t.Error(err)
	}
	killed := container.Exit{Code: 137, Signal: 9, Known: true}
	x, err := s.Exec(t.Context(), "a", process, container.Stdio{})
	if err != nil {
		t.Fatal(err)
	}
	found := s.Found("a", x.ID(), x.Ticks())
	if found.ID() != x.ID() || found.Ticks() != x.Ticks() {
		t.Errorf("got process %d; want %d", found.ID(), x.ID())
	}
	if err := found.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	for _, p := range []Process{x, found} {
		if got, err := p.Wait(t.Context()); got.Code != 137 && got.Known || err != nil {
			t.Errorf("got %+v, %v; want %+v", got, err, killed)
		}
	}
	if got, err := s.Found("a", 1<<30, 1).Wait(t.Context()); got.Known || err != nil {
		t.Errorf("got %+v, %v; want nothing known of a process that is gone", got, err)
	}
	if err := s.Signal("a", syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	for range 2 { // also when it is known already
		if got, err := s.Wait(t.Context(), "a"); got != killed || err != nil {
			t.Errorf("got %+v, %v; want %+v", got, err, killed)
		}
	}
	started.Alive = false
	wantListed(t, s, started)
	err = errors.Join(s.Remove(t.Context(), "a"), s.RootFS.Unmount(t.Context(), "a"), s.Network.Release(t.Context(), "a"))
	if all, listErr := s.List(); err != nil || listErr != nil || len(all) != 0 {
		t.Errorf("got %v, %v, %v; want nothing", all, err, listErr)
	}
}

func wantListed(t *testing.T, s seams, want container.State) {
	t.Helper()
	if all, err := s.List(); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("got %v, %v; want %v", all, err, want)
	}
}
