package server

import (
	"archive/tar"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/server/api"
	"cupola/store"
	"cupola/store/cf"
)

// stackDaemon is a daemon with what stacks need, that serves its socket in a
// directory whose name is too long for a socket's address.
func stackDaemon(t *testing.T) (*daemon, control) {
	t.Helper()
	d := &daemon{Config: Config{DataDir: filepath.Join(t.TempDir(), strings.Repeat("long", 30)), AllowLoopback: true}}
	if err := d.normalize(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	for _, open := range []func(context.Context) error{d.openDir, d.openStore, d.openRoots} {
		if err := open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	listening, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- d.serveControl(ctx, func() { close(listening) }) }()
	select {
	case <-listening:
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(d.path(controlSocket)); !os.IsNotExist(err) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	return d, newControl(d.DataDir)
}

// rootTar writes a root file system of one file.
func rootTar(t *testing.T) string {
	t.Helper()
	return rootTarOf(t, "etc/motd", []byte("hello"))
}

func rootTarOf(t *testing.T, file string, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "cflinuxfs4.tar")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	for _, h := range []*tar.Header{
		{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: file, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func stackNames(t *testing.T, s Stacks) (names []string) {
	t.Helper()
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

func rows(t *testing.T, d *daemon) (names []string) {
	t.Helper()
	err := d.store.Read(t.Context(), func(tx *store.Tx) error {
		all, err := store.Stacks.All(tx)
		for _, s := range all {
			names = append(names, s.Name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestStacksThroughDaemon(t *testing.T) {
	d, c := stackDaemon(t)
	var steps []StackStep
	info, err := c.Import(t.Context(), StackImport{Name: "mine", Path: rootTar(t)}, func(s StackStep) { steps = append(steps, s) })
	if err != nil {
		t.Fatal(err)
	}
	if info.Compat != "cflinuxfs4" || info.Bytes < 5 {
		t.Errorf("got compat %q of %d bytes; want cflinuxfs4 of at least 5", info.Compat, info.Bytes)
	}
	if len(steps) == 0 || steps[len(steps)-1].Step != "import" || steps[len(steps)-1].Done != steps[len(steps)-1].Total {
		t.Errorf("got steps %+v; want the last one to be done", steps)
	}
	if names := stackNames(t, c); !slices.Contains(names, "mine") || !slices.Contains(names, "minifs") {
		t.Errorf("got stacks %q; want mine among them", names)
	}
	if names := rows(t, d); !slices.Contains(names, "mine") {
		t.Errorf("got %q in the API; want mine among them", names)
	}
	if _, err := c.Remove(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	if names := append(stackNames(t, c), rows(t, d)...); slices.Contains(names, "mine") {
		t.Errorf("got %q after it was removed", names)
	}
}

func TestStackOfAppStays(t *testing.T) {
	d, c := stackDaemon(t)
	if _, err := c.Import(t.Context(), StackImport{Name: "mine", Path: rootTar(t)}, func(StackStep) {}); err != nil {
		t.Fatal(err)
	}
	err := d.store.Write(t.Context(), func(tx *store.Tx) error {
		if err := firstPlace(tx); err != nil {
			return err
		}
		spaces, err := store.Spaces.All(tx)
		if err != nil {
			return err
		}
		return store.Apps.Put(tx, &cf.App{Name: "blog", SpaceGUID: spaces[0].GUID, State: "STOPPED", Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: "mine"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Remove(t.Context(), "mine"); err == nil || !strings.Contains(err.Error(), "is used by apps: cupola/dev/blog;") {
		t.Errorf("got %v; want that blog is on it", err)
	}
	if d, err := c.Inspect(t.Context(), "mine"); err != nil || d.Stack == nil || d.Stack.Name != "mine" || d.Image != nil || !slices.Equal(d.Users, []string{"cupola/dev/blog"}) {
		t.Errorf("got %+v, %v", d, err)
	}
	if names := stackNames(t, c); !slices.Contains(names, "mine") {
		t.Errorf("got %q; want mine still there", names)
	}
}

func removed(c control, name string) error {
	_, err := c.Remove(context.Background(), name)
	return err
}

func TestStackErrorsThroughDaemon(t *testing.T) {
	d, c := stackDaemon(t)
	quiet := func(StackStep) {}
	for _, e := range []struct {
		name string
		call func() error
		want string
	}{
		{"no file", func() error {
			_, err := c.Import(t.Context(), StackImport{Name: "x", Path: "/does/not/exist"}, quiet)
			return err
		}, "no such file"},
		{"relative", func() error {
			_, err := c.Import(t.Context(), StackImport{Name: "x", Path: "exist"}, quiet)
			return err
		}, "not absolute"},
		{"taken name", func() error {
			_, err := c.Import(t.Context(), StackImport{Name: "minifs", Path: rootTar(t)}, quiet)
			return err
		}, "taken"},
		{"unknown suite", func() error {
			_, err := c.Build(t.Context(), StackBuild{Suite: "plan9"}, quiet)
			return err
		}, "debian12"},
		{"own stack", func() error { return removed(c, "minifs") }, "part of cupola"},
		{"no stack", func() error { return removed(c, "a/b") }, "no stack and no image is called a/b"},
		{"neither", func() error { return removed(c, "sha256:12") }, "no stack and no image"},
		{"no daemon", func() error { return removed(newControl(t.TempDir()), "x") }, "start it with"},
	} {
		if err := e.call(); err == nil || !strings.Contains(err.Error(), e.want) {
			t.Errorf("%s: got %v; want %q", e.name, err, e.want)
		}
	}
	if names := rows(t, d); len(names) > 0 {
		t.Errorf("got %q in the API after failures; want nothing new", names)
	}
}

func TestStackBuild(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_DEBIAN") != "1" {
		t.Skip("needs CUPOLA_TEST_DEBIAN=1 and a mirror in apt's sources")
	}
	_, c := stackDaemon(t)
	seen := map[string]bool{}
	info, err := c.Build(t.Context(), StackBuild{Suite: "debian12", Variant: "none"}, func(s StackStep) { seen[s.Step] = true })
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"index", "resolve", "download", "unpack", "finish", "save"} {
		if !seen[step] {
			t.Errorf("the step %s was not told", step)
		}
	}
	if info.Name != "debian12" || info.Lock == "" {
		t.Errorf("got %+v; want debian12 with a lock", info)
	}
}

func TestSeedKeepsOneDefault(t *testing.T) {
	d, _ := stackDaemon(t)
	for range 2 {
		if err := (localStacks{d}).offer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	defaults := slices.DeleteFunc(d.systemStacks(), func(s api.SystemStack) bool { return !s.Default })
	if len(defaults) != 1 {
		t.Errorf("got defaults %v; want one", defaults)
	}
}
