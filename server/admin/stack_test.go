package admin

import (
	"archive/tar"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/rootfs/image"
	"cupola/rootfs/registry"
	"cupola/server/admin/stack"
	"cupola/server/admin/steps"
	"cupola/server/control/stacks"
	"cupola/server/datadir"
	"cupola/store"
	"cupola/store/cf"
)

// testDaemon is a daemon with what stacks need, that serves its socket in a
// directory whose name is too long for a socket's address. Its operator named the
// registries.
type testDaemon struct {
	*stack.Library
	target Target
}

func startDaemon(t *testing.T, registries ...string) testDaemon {
	t.Helper()
	target := Target{DataDir: filepath.Join(t.TempDir(), strings.Repeat("long", 30)), Log: slog.New(slog.DiscardHandler), Registries: registry.Config{PlainHTTP: registries}}
	dir, err := datadir.Open(target.DataDir, target.Log)
	if err != nil {
		t.Fatal(err)
	}
	parts := newOpener(target, dir)
	t.Cleanup(func() {
		if err := parts.close(); err != nil {
			t.Error(err)
		}
	})
	library, err := parts.stacks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	listening, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- (&Daemon{Dir: dir, Stacks: library, Log: target.Log}).serve(ctx, func() { close(listening) })
	}()
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
		if _, err := os.Lstat(dir.Path(controlSocket)); !os.IsNotExist(err) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	return testDaemon{library, target}
}

func (d testDaemon) imported(t *testing.T, in stack.ImportRequest, report steps.Func) (stack.Info, error) {
	return StackImport.Do(t.Context(), d.target, in, report)
}

func (d testDaemon) pulled(t *testing.T, in stack.PullRequest, report steps.Func) (stack.Info, error) {
	return StackPull.Do(t.Context(), d.target, in, report)
}

func (d testDaemon) inspected(t *testing.T, name string) (stack.Detail, error) {
	return StackInspect.Do(t.Context(), d.target, stack.NameRequest{Name: name}, nil)
}

func (d testDaemon) removed(t *testing.T, name string) (image.Removed, error) {
	return StackRemove.Do(t.Context(), d.target, stack.NameRequest{Name: name}, nil)
}

func (d testDaemon) collected(t *testing.T, in stack.GCRequest) (image.Removed, error) {
	return StackGC.Do(t.Context(), d.target, in, nil)
}

func (d testDaemon) listed(t *testing.T) stack.Listing {
	t.Helper()
	all, err := StackList.Do(t.Context(), d.target, None{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// place makes the org cupola with the space dev, and returns the space's GUID.
func place(tx *store.Tx) (string, error) {
	org := &cf.Org{Name: "cupola"}
	if err := store.Orgs.Insert(tx, org); err != nil {
		return "", err
	}
	space := &cf.Space{Name: "dev", OrgGUID: org.GUID}
	return space.GUID, store.Spaces.Insert(tx, space)
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

func stackNames(t *testing.T, d testDaemon) (names []string) {
	t.Helper()
	for _, i := range d.listed(t).Stacks {
		names = append(names, i.Name)
	}
	return names
}

func rows(t *testing.T, d testDaemon) (names []string) {
	t.Helper()
	err := d.Store.Read(t.Context(), func(tx *store.Tx) error {
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
	d := startDaemon(t)
	var told []steps.Step
	info, err := d.imported(t, stack.ImportRequest{Name: "mine", Path: rootTar(t)}, func(s steps.Step) { told = append(told, s) })
	if err != nil {
		t.Fatal(err)
	}
	if info.Compat != "cflinuxfs4" || info.Bytes < 5 {
		t.Errorf("got compat %q of %d bytes; want cflinuxfs4 of at least 5", info.Compat, info.Bytes)
	}
	if len(told) == 0 || told[len(told)-1].Step != "import" || told[len(told)-1].Done != told[len(told)-1].Total {
		t.Errorf("got told %+v; want the last one to be done", told)
	}
	if names := stackNames(t, d); !slices.Contains(names, "mine") || !slices.Contains(names, "minifs") {
		t.Errorf("got stacks %q; want mine among them", names)
	}
	if names := rows(t, d); !slices.Contains(names, "mine") {
		t.Errorf("got %q in the API; want mine among them", names)
	}
	if _, err := d.removed(t, "mine"); err != nil {
		t.Fatal(err)
	}
	if names := append(stackNames(t, d), rows(t, d)...); slices.Contains(names, "mine") {
		t.Errorf("got %q after it was removed", names)
	}
}

func TestStackOfAppStays(t *testing.T) {
	d := startDaemon(t)
	if _, err := d.imported(t, stack.ImportRequest{Name: "mine", Path: rootTar(t)}, nil); err != nil {
		t.Fatal(err)
	}
	err := d.Store.Write(t.Context(), func(tx *store.Tx) error {
		space, err := place(tx)
		if err != nil {
			return err
		}
		return store.Apps.Put(tx, &cf.App{Name: "blog", SpaceGUID: space, State: "STOPPED", Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: "mine"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.removed(t, "mine"); err == nil || !strings.Contains(err.Error(), "is used by apps: cupola/dev/blog;") {
		t.Errorf("got %v; want that blog is on it", err)
	}
	if i, err := d.inspected(t, "mine"); err != nil || i.Stack == nil || i.Stack.Name != "mine" || i.Image != nil || !slices.Equal(i.Users, []string{"cupola/dev/blog"}) {
		t.Errorf("got %+v, %v", i, err)
	}
	if names := stackNames(t, d); !slices.Contains(names, "mine") {
		t.Errorf("got %q; want mine still there", names)
	}
}

func TestStackErrorsThroughDaemon(t *testing.T) {
	d := startDaemon(t)
	var quiet steps.Func
	for _, e := range []struct {
		name string
		call func() error
		want string
	}{
		{"no file", func() error {
			_, err := d.imported(t, stack.ImportRequest{Name: "x", Path: "/does/not/exist"}, quiet)
			return err
		}, "no such file"},
		{"relative", func() error {
			_, err := d.imported(t, stack.ImportRequest{Name: "x", Path: "exist"}, quiet)
			return err
		}, "not absolute"},
		{"taken name", func() error {
			_, err := d.imported(t, stack.ImportRequest{Name: "minifs", Path: rootTar(t)}, quiet)
			return err
		}, "taken"},
		{"unknown suite", func() error {
			_, err := StackBuild.Do(t.Context(), d.target, stack.BuildRequest{Suite: "plan9"}, quiet)
			return err
		}, "debian12"},
		{"unknown toolchain", func() error {
			_, err := StackBuild.Do(t.Context(), d.target, stack.BuildRequest{Suite: "debian12", With: []string{"java", "cobol"}}, quiet)
			return err
		}, `invalid --with "cobol": choose of java, node, python, ruby, go, php, nginx, rust, r`},
		{"own stack", func() error { return second(d.removed(t, "minifs")) }, "part of cupola"},
		{"no stack", func() error { return second(d.removed(t, "a/b")) }, "there is no stack or image a/b"},
		{"neither", func() error { return second(d.removed(t, "sha256:12")) }, "no stack or image"},
		{"no daemon", func() error { return second(KeyList.Do(t.Context(), Target{DataDir: t.TempDir()}, None{}, nil)) }, "start it with"},
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
	d := startDaemon(t)
	seen := map[string]bool{}
	info, err := StackBuild.Do(t.Context(), d.target, stack.BuildRequest{Suite: "debian12", Variant: "none"}, func(s steps.Step) { seen[s.Step] = true })
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
	d := startDaemon(t)
	for range 2 {
		if err := d.Offer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	defaults := slices.DeleteFunc(d.Rows(), func(s stacks.System) bool { return !s.Default })
	if len(defaults) != 1 {
		t.Errorf("got defaults %v; want one", defaults)
	}
}
