package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cupola/rootfs/layer"
	"cupola/rootfs/overlay"
	"cupola/rootfs/root"
	"cupola/rootfs/stack"
	"cupola/rootfs/tree"
	"cupola/runtime/contract"
	"cupola/runtime/users"
)

var someDigest = "sha256:" + strings.Repeat("0a", 32)

var testIDs = users.Range{Base: 1_200_000, Size: 65536}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
}

// newStore opens a store in a new directory and removes everything after the test.
func newStore(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ids, err := s.List()
		if err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			if err := s.Unmount(context.Background(), id); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left, err := overlay.MountsBelow(s.store.Dir); err != nil || len(left) > 0 || overlay.IsMount(s.store.Path("run")) {
			t.Errorf("got mounts %q, error %v after the test; want none", left, err)
		}
	})
	return s
}

type file struct {
	name, content string
	mode          fs.FileMode
}

// writeTgz makes a gzipped tar of files and returns its path and digest.
func writeTgz(t testing.TB, files ...file) (name, digest string) {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.content)), Typeflag: tar.TypeReg}
		if f.mode.IsDir() {
			h.Typeflag, h.Size = tar.TypeDir, 0
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, f.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	name = filepath.Join(t.TempDir(), "archive.tgz")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name, hex.EncodeToString(sum[:])
}

func droplet(t testing.TB, content string) layer.Layer {
	t.Helper()
	archive, digest := writeTgz(t, file{"./app", "", fs.ModeDir | 0o755}, file{"./app/run", content, 0o755})
	return layer.Layer{Digest: digest, Archive: archive, Dest: "/home/vcap", UID: contract.VcapID, GID: contract.VcapID}
}

func ownerOf(t *testing.T, name string) (uid, gid uint32) {
	t.Helper()
	st, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	sys := st.Sys().(*syscall.Stat_t)
	return sys.Uid, sys.Gid
}

func TestMount(t *testing.T) {
	needRoot(t)
	ctx := t.Context()
	s := newStore(t, Config{IDs: testIDs, Tools: []string{"ls", "cat"}})
	l := droplet(t, "hello")
	mounted, err := s.Mount(ctx, root.Request{ID: "one", Stack: "minifs", Layers: []layer.Layer{l}, DiskBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if len(mounted.Binds) != 0 {
		t.Errorf("got binds %v; want none for minifs", mounted.Binds)
	}
	got, err := os.ReadFile(filepath.Join(mounted.Path, "home/vcap/app/run"))
	if err != nil || string(got) != "hello" {
		t.Fatalf("got %q, %v; want the droplet's file", got, err)
	}
	for name, want := range map[string]uint32{"": 0, "etc/passwd": 0, "tmp": 0, "home": 0, "home/vcap": contract.VcapID, "home/vcap/app/run": contract.VcapID} {
		uid, gid := ownerOf(t, filepath.Join(mounted.Path, name))
		if uid != testIDs.Base+want || gid != testIDs.Base+want {
			t.Errorf("%q: got owner %d:%d; want %d", name, uid, gid, testIDs.Base+want)
		}
	}
	if to, err := os.Readlink(filepath.Join(mounted.Path, "bin/ls")); to != contract.Helper {
		t.Errorf("got /bin/ls -> %q, %v; want %s", to, err, contract.Helper)
	}
	if st, err := os.Stat(filepath.Join(mounted.Path, "tmp")); err != nil || st.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("got /tmp %v, %v; want 1777", st.Mode(), err)
	}
	if _, err := s.Mount(ctx, root.Request{ID: "one", Stack: "minifs"}); !errors.Is(err, root.ErrMounted) {
		t.Errorf("got %v at the second mount; want ErrMounted", err)
	}
	if ids, err := s.List(); err != nil || !slices.Equal(ids, []string{"one"}) {
		t.Errorf("got %q, %v; want one", ids, err)
	}
	for range 2 {
		if err := s.Unmount(ctx, "one"); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := s.List(); err != nil || len(ids) != 0 {
		t.Errorf("got %q, %v; want none", ids, err)
	}
}

func TestQuota(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDs: testIDs})
	method, why := s.Quota()
	t.Logf("%s: %s", method, why)
	if method == "plain directory" {
		t.Skip("no quota here")
	}
	l := droplet(t, strings.Repeat("x", 1<<20))
	mounted, err := s.Mount(t.Context(), root.Request{ID: "small", Stack: "minifs", Layers: []layer.Layer{l}, DiskBytes: 33 << 20})
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.DiskUsage("small")
	if err != nil || before < 1<<20 || before > 2<<20 {
		t.Errorf("got %d, %v; want the layer's MiB and little more", before, err)
	}
	f, err := os.Create(filepath.Join(mounted.Path, "tmp/fill"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var n int
	for block := make([]byte, 1<<20); err == nil; n++ {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("got %v; want ENOSPC or EDQUOT", err)
	}
	if n < 32 || n > 34 {
		t.Errorf("got %d MiB written; want about 32", n)
	}
	if used, err := s.DiskUsage("small"); err != nil || used < 32<<20 || used > 35<<20 {
		t.Errorf("got %d used, %v; want about 33 MiB", used, err)
	}
	_, err = s.Mount(t.Context(), root.Request{ID: "tiny", Stack: "minifs", Layers: []layer.Layer{l}, DiskBytes: 1 << 20})
	if err == nil {
		t.Error("a droplet larger than the disk was mounted")
	}
	if ids, _ := s.List(); !slices.Equal(ids, []string{"small"}) {
		t.Errorf("got %q; want small alone", ids)
	}
}

func TestHostStack(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDs: testIDs})
	name, why := s.Stacks.Default("")
	t.Logf("default %s: %s", name, why)
	st, ok := s.Stacks.Get("host")
	if !ok {
		t.Skip("the host stack is not offered: " + why)
	}
	mounted, err := s.Mount(t.Context(), root.Request{ID: "h", Stack: "host", DiskBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if name != "host" || len(mounted.Binds) == 0 || mounted.Binds[0] != (stack.Bind{Source: "/usr", Destination: "/usr", ReadOnly: true}) {
		t.Errorf("got default %s, binds %v; want host with /usr first", name, mounted.Binds)
	}
	for _, b := range mounted.Binds {
		if !b.ReadOnly {
			t.Errorf("got %v; want it read-only", b)
		}
		if hides := slices.Contains([]string{"usr/local/etc", "usr/local/var"}, b.Destination[1:]); hides != (b.Source == "") || strings.HasPrefix(b.Source, s.store.Dir) {
			t.Errorf("got %v; want no path of the store, and what is hidden without a source", b)
		}
		for _, never := range []string{"/", "/home", "/var", "/etc", "/etc/ssl"} {
			if b.Source == never {
				t.Errorf("got bind of %s", b.Source)
			}
		}
	}
	if st.Kind != stack.KindHost {
		t.Errorf("got kind %s; want host", st.Kind)
	}
}

func TestFiles(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDs: testIDs})
	mounted, err := s.Mount(t.Context(), root.Request{ID: "f", Stack: "minifs", DiskBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	archive, _ := writeTgz(t, file{"index.html", "hi", 0o644}, file{"sub/x", "y", 0o4755})
	if err := s.Extract(t.Context(), "f", archive, "/tmp/app", tree.Owner{UID: contract.VcapID, GID: contract.VcapID}); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(mounted.Path, "tmp/app/sub/x"))
	if err != nil || st.Mode() != 0o755 {
		t.Errorf("got %v, %v; want mode 0755 without set-uid", st.Mode(), err)
	}
	if uid, _ := ownerOf(t, filepath.Join(mounted.Path, "tmp/app")); uid != testIDs.Base+contract.VcapID {
		t.Errorf("got owner %d of /tmp/app; want vcap", uid)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := errors.Join(os.Symlink(outside, filepath.Join(mounted.Path, "etc/link")), os.Symlink("/etc/passwd", filepath.Join(mounted.Path, "tmp/pw")),
		syscall.Mkfifo(filepath.Join(mounted.Path, "tmp/fifo"), 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteFile("f", "/etc/link", []byte("mine"), 0o644, 0, 0); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("WriteFile followed a link out of the root")
	}
	if err := s.WriteFile("f", "/app/deep/er/file", []byte("x"), 0o600, contract.VcapID, contract.VcapID); err != nil {
		t.Error(err)
	}
	f, err := s.Open("f", "/home/vcap/app/deep/er/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"/tmp/pw", "/tmp/fifo", "/tmp", "/none", "../../etc/shadow"} {
		if f, err := s.Open("f", name); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
	}
	if _, err := s.Open("other", "/etc/passwd"); !errors.Is(err, root.ErrNotMounted) {
		t.Errorf("got %v; want ErrNotMounted", err)
	}
}

// TestLayerShared mounts one droplet many times at once: it is unpacked once.
func TestLayerShared(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDs: testIDs})
	l := droplet(t, "shared")
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if _, err := s.Mount(t.Context(), root.Request{ID: fmt.Sprintf("c%d", i), Stack: "minifs", Layers: []layer.Layer{l}, DiskBytes: 16 << 20}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	entries, err := os.ReadDir(s.store.Path("layers"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %v, %v; want one layer", entries, err)
	}
	none := func(string) bool { return false }
	if err := s.Layers.Prune(t.Context(), none, 0); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(s.store.Path("layers")); len(entries) != 1 {
		t.Error("a mounted layer was pruned")
	}
	for i := range 16 {
		if err := s.Unmount(t.Context(), fmt.Sprintf("c%d", i)); err != nil {
			t.Error(err)
		}
	}
	if err := s.Layers.Prune(t.Context(), none, 0); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(s.store.Path("layers")); len(entries) != 0 {
		t.Errorf("got %v after pruning; want no layers", entries)
	}
}
