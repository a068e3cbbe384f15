package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"

	"cupola/rootfs/registry/registrytest"
	"cupola/rootfs/stack"
	"cupola/rootfs/system"
)

// testImage has three layers: one hides and replaces what the first has, one writes through its links.
func testImage(t *testing.T, labels map[string]string) v1.Image {
	t.Helper()
	img := empty.Image
	for _, text := range [][]byte{
		registrytest.Tar(t, "usr/bin/bash=#!", "bin -> usr/bin", "etc/os-release=VERSION_CODENAME=jammy\n", "etc/passwd=root:x:0:0::/root:/bin/sh", "gone/file=1", "keep=1"),
		registrytest.Tar(t, ".wh.gone", "bin/tool=2"),
		registrytest.Tar(t, "keep=3"),
	} {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil })
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture, cfg.Config.Labels = "linux", runtime.GOARCH, labels
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		t.Fatal(err)
	}
	return img
}

// writeLayout makes an OCI layout of img beside one for another platform.
func writeLayout(t *testing.T, img v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	other := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: empty.Image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}},
		mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AppendIndex(other); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tarDir packs a directory as a tar does: in the order of names.
func tarDir(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writeFile(t *testing.T, base string, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), base)
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstded(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

func dockerArchive(t *testing.T, img v1.Image, tag string) string {
	t.Helper()
	ref, err := name.NewTag(tag)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "saved.tar")
	if err := tarball.WriteToFile(file, ref, img); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestImport(t *testing.T) {
	t.Parallel()
	img := testImage(t, nil)
	lay := writeLayout(t, img)
	rootTar := registrytest.Tar(t, "./usr/bin/bash=#!", "./bin -> usr/bin", "./bin/tool=2", "./etc/os-release=VERSION_CODENAME=jammy\n", "./etc/passwd=root:x:0:0::/root:/bin/sh", "./keep=3")
	sources := map[string]string{
		"layout":            lay,
		"layout.tar":        writeFile(t, "layout.tar", tarDir(t, lay)),
		"layout.tar.gz":     writeFile(t, "layout.tgz", gzipped(t, tarDir(t, lay))),
		"docker-archive":    dockerArchive(t, img, "example.org/some/thing:1"),
		"root.tar":          writeFile(t, "root.tar", rootTar),
		"root.tar.gz":       writeFile(t, "root.tgz", gzipped(t, rootTar)),
		"root.tar.zst":      writeFile(t, "root.tar.zst", zstded(t, rootTar)),
		"docker-archive.gz": writeFile(t, "saved.tgz", gzipped(t, read(t, dockerArchive(t, img, "x/y:1")))),
	}
	s := newStore(t, Config{})
	for kind, source := range sources {
		var done, total int64
		n := strings.ReplaceAll(kind, ".", "-")
		st, err := s.Stacks.Import(t.Context(), n, "", source, func(d, of int64) { done, total = d, of })
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if st.Compat != "cflinuxfs4" || st.Kind != stack.KindDir || st.Bytes == 0 || st.Created.IsZero() {
			t.Errorf("%s: got %+v; want a tree compatible with cflinuxfs4, as its os-release says", kind, st)
		}
		if done == 0 || done > total {
			t.Errorf("%s: got progress %d of %d", kind, done, total)
		}
		checkImported(t, kind, st.Dirs()[0])
	}
	if again, err := New(s.cfg); err != nil || len(again.Stacks.All()) != len(s.Stacks.All()) {
		t.Errorf("got %d stacks, %v from a second store; want %d", len(again.Stacks.All()), err, len(s.Stacks.All()))
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkImported(t *testing.T, kind, dir string) {
	t.Helper()
	for name, want := range map[string]string{"usr/bin/tool": "2", "keep": "3", "etc/passwd": "root:x:0:0::/root:/bin/sh\nvcap:x:2000:2000:vcap:/home/vcap:/bin/bash\n"} {
		if got := string(read(t, filepath.Join(dir, name))); got != want {
			t.Errorf("%s: got %s %q; want %q", kind, name, got, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "gone")); err == nil {
		t.Errorf("%s: a whited-out directory is there", kind)
	}
	if st, err := os.Stat(filepath.Join(dir, "tmp")); err != nil || st.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("%s: got /tmp %v, %v; want 1777", kind, st.Mode(), err)
	}
	for _, name := range []string{"home/vcap/app", system.CABundle, "etc/group"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestCompat(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{Compat: map[string]string{"ruled": "cflinuxfs9"}})
	plain, labeled := testImage(t, nil), testImage(t, map[string]string{"org.cloudfoundry.stack.compat": "special"})
	cases := []struct {
		stack, compat, source, want string
	}{
		{"explicit", "mine", dockerArchive(t, labeled, "a/b:1"), "mine"},
		{"label", "", dockerArchive(t, labeled, "cloudfoundry/cflinuxfs5:1"), "special"},
		{"repository", "", dockerArchive(t, plain, "cloudfoundry/cflinuxfs5:1"), "cflinuxfs5"},
		{"release", "", dockerArchive(t, plain, "a/b:1"), "cflinuxfs4"},
		{"name", "", writeFile(t, "r.tar", registrytest.Tar(t, "bin/sh=x")), "name"},
		{"file", "", writeFile(t, "cflinuxfs3-1.2.tar", registrytest.Tar(t, "bin/sh=x")), "cflinuxfs3"},
		{"ruled", "", writeFile(t, "cflinuxfs3-1.2.tar", registrytest.Tar(t, "bin/sh=x")), "cflinuxfs9"},
	}
	for _, c := range cases {
		st, err := s.Stacks.Import(t.Context(), c.stack, c.compat, c.source, nil)
		if err != nil || st.Compat != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.stack, st.Compat, err, c.want)
		}
	}
}

func TestImportRefused(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{})
	lay := writeLayout(t, testImage(t, nil))
	blobs, err := filepath.Glob(filepath.Join(lay, "blobs/sha256/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs { // a gzip's last bytes are its length: the content stays readable, the digest does not
		text := read(t, b)
		if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
			text[len(text)-1] ^= 1
			if err := os.WriteFile(b, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	good := writeFile(t, "ok.tar", registrytest.Tar(t, "bin/sh=x"))
	cases := []struct{ stack, source, want string }{
		{"damaged", lay, "digest"},
		{"empty", writeFile(t, "e.tar", nil), "is empty"},
		{"text", writeFile(t, "t.txt", []byte(strings.Repeat("text\n", 300))), "not a tar archive"},
		{"dir", t.TempDir(), "not an OCI image layout"},
		{"nothing", filepath.Join(t.TempDir(), "none"), "no such file"},
		{"climbs", writeFile(t, "c.tar", registrytest.Tar(t, "bin/sh=x", "../../evil=x")), "climbs out"},
		{"two", writeFile(t, "two.tar", registrytest.Tar(t, `manifest.json=[{"Config":"a"},{"Config":"b"}]`)), "holds 2 images"},
		{"outside", writeFile(t, "o.tar", registrytest.Tar(t, `manifest.json=[{"Config":"../../etc/passwd"}]`)), "no file"},
		{"minifs", good, "taken"},
		{"host", good, "taken"},
		{"../x", good, "stack name"},
	}
	for _, c := range cases {
		if _, err := s.Stacks.Import(t.Context(), c.stack, "", c.source, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %q", c.stack, err, c.want)
		}
		if _, ok := s.Stacks.Get(c.stack); ok && c.stack != stack.Minifs && c.stack != stack.Host {
			t.Errorf("%s: the stack is there", c.stack)
		}
	}
	if left, _ := filepath.Glob(s.store.Path("stacks", ".new-*")); len(left) > 0 {
		t.Errorf("got %q left behind", left)
	}
}

func TestAddAndRemove(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{})
	build := func(_ context.Context, dir string) ([]byte, error) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		return []byte("lock"), os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644)
	}
	n := stack.Spec{Name: "built", Origin: "a test"}
	st, err := s.Stacks.Add(t.Context(), n, build)
	if err != nil || st.Compat != "built" || st.Description != "a test" {
		t.Fatalf("got %+v, %v", st, err)
	}
	if lock, err := s.Stacks.Lock("built"); err != nil || string(lock) != "lock" {
		t.Errorf("got lock %q, %v", lock, err)
	}
	if _, err := s.Stacks.Add(t.Context(), n, build); err == nil {
		t.Error("a stack was made twice")
	}
	broken := errors.New("broken")
	if _, err := s.Stacks.Add(t.Context(), stack.Spec{Name: "other"}, func(context.Context, string) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v; want the builder's error", err)
	}
	for name, ok := range map[string]bool{"built": true, "minifs": false, "none": false} {
		if err := s.Stacks.Remove(name); (err == nil) != ok {
			t.Errorf("remove %s: got %v; want success %t", name, err, ok)
		}
	}
	if _, err := s.Stacks.Add(t.Context(), n, build); err != nil {
		t.Errorf("got %v adding a removed stack again", err)
	}
}

func TestDefault(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{})
	if name, why := s.Stacks.Default("minifs"); name != "minifs" || why == "" {
		t.Errorf("got %q, %q; want the operator's choice", name, why)
	}
	if name, why := s.Stacks.Default("nonesuch"); name == "nonesuch" || !strings.Contains(why, "not here") {
		t.Errorf("got %q, %q; want another with the reason", name, why)
	}
}

func ExampleStore() {
	dir, err := os.MkdirTemp("", "rootfs-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := New(Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	fmt.Println(s.Stacks.Default("minifs"))
	// Output: minifs chosen by the operator
}
