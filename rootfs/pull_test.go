//go:build linux

package rootfs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"cupola/rootfs/reference"
)

var userSecret = PullOptions{Username: "user", Password: "secret"}

// noise is text that no compression shortens.
func noise(seed uint64, n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	r.Read(b)
	return string(b)
}

// inRoot mounts what names and calls do with the root's path.
func inRoot(t *testing.T, s *Store, names string, do func(root string)) {
	t.Helper()
	root, err := s.Mount(t.Context(), Request{ID: "test", Stack: names, DiskBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	do(root.Path)
	if err := s.Unmount(t.Context(), "test"); err != nil {
		t.Error(err)
	}
}

func TestPull(t *testing.T) {
	needRoot(t)
	for _, mode := range []login{loginNone, loginBasic, loginToken} {
		t.Run(string(mode), func(t *testing.T) {
			reg := newRegistry(t, mode)
			s := newStore(t, Config{Registries: reg.config(), IDMap: testIDs})
			cfg := v1.Config{User: "app", Env: []string{"A=b"}, Entrypoint: []string{"/run"}, Cmd: []string{"x"}, WorkingDir: "/srv",
				ExposedPorts: map[string]struct{}{"8080/tcp": {}, "53/udp": {}}}
			base := testImage(t, nil)
			img := platform(t, base, runtime.GOARCH, cfg)
			ref, digest := reg.push("team/app:v1", img)
			var last LayerProgress
			o := userSecret
			o.Progress = func(p LayerProgress) { last = p }
			got, err := s.Pull(t.Context(), ref, o)
			if err != nil {
				t.Fatal(err)
			}
			if got.Digest != digest || got.Reference != ref.String() || len(got.Layers) != 3 || got.Compat != "cflinuxfs4" || got.Arch != runtime.GOARCH || got.Bytes == 0 {
				t.Errorf("got %+v", got)
			}
			if c := got.Config; c.User != "app" || c.WorkingDir != "/srv" || !slices.Equal(c.ExposedPorts, []string{"53/udp", "8080/tcp"}) || c.Entrypoint[0] != "/run" || c.Cmd[0] != "x" || c.Env[0] != "A=b" {
				t.Errorf("got config %+v", c)
			}
			if last.Phase != PhaseHere || last.Layers != 3 {
				t.Errorf("got %+v as the last progress; want a layer that is done", last)
			}
			inRoot(t, s, ref.WithDigest(digest).String(), func(root string) { checkImported(t, "pulled", root) })
			if _, err := s.Mount(t.Context(), Request{ID: "tag", Stack: ref.String()}); !isError(err, ErrNotPulled) {
				t.Errorf("got %v of a root by its tag; want ErrNotPulled", err)
			}
			other := ref.WithDigest(someDigest)
			if _, err := s.Mount(t.Context(), Request{ID: "other", Stack: other.String()}); !isError(err, ErrNotPulled) {
				t.Errorf("got %v of another image; want ErrNotPulled", err)
			}
			checkSecondPull(t, reg, s, ref, digest)
		})
	}
}

// checkSecondPull holds that an image that is here by its digest asks nobody, also after the registry has gone.
func checkSecondPull(t *testing.T, reg *testRegistry, s *Store, ref reference.Reference, digest string) {
	t.Helper()
	reg.forget()
	if _, err := s.Pull(t.Context(), ref.WithDigest(digest), PullOptions{}); err != nil || reg.asked("", "") > 0 || len(reg.all()) > 0 {
		t.Errorf("got %v and requests %q of a second pull; want none", err, reg.all())
	}
	if _, err := s.Pull(t.Context(), ref, userSecret); err != nil || reg.asked("GET", "/blobs/") > 0 {
		t.Errorf("got %v and requests %q of a second pull by the tag; want no blob", err, reg.all())
	}
	// Another repository's image with the same digest is another's: the registry is asked whether one may have it.
	if _, err := s.Pull(t.Context(), reg.ref("other/app").WithDigest(digest), userSecret); !isError(err, ErrImageMissing) {
		t.Errorf("got %v of the digest in another repository; want ErrImageMissing", err)
	}
	reg.Close()
	again, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Pull(t.Context(), ref.WithDigest(digest), PullOptions{}); err != nil {
		t.Errorf("got %v after a restart without the registry", err)
	}
	inRoot(t, again, ref.WithDigest(digest).String(), func(root string) { checkImported(t, "again", root) })
}

func TestPullDenied(t *testing.T) {
	needRoot(t)
	for _, mode := range []login{loginBasic, loginToken} {
		reg := newRegistry(t, mode)
		s := newStore(t, Config{Registries: reg.config()})
		ref, digest := reg.push("private", imageOf(t, v1.Config{}, tarText(t, "a=1")))
		for _, o := range []PullOptions{{}, {Username: "user", Password: "wrong"}, {Password: "secret"}} {
			if _, err := s.Pull(t.Context(), ref, o); !isError(err, ErrImageDenied) || strings.Contains(err.Error(), "wrong)") {
				t.Errorf("%s: got %v; want ErrImageDenied", mode, err)
			}
			if _, err := s.Pull(t.Context(), ref.WithDigest(digest), o); !isError(err, ErrImageDenied) {
				t.Errorf("%s: got %v by digest; want ErrImageDenied", mode, err)
			}
		}
	}
}

// TestPullShared holds that layers that two images share are moved once.
func TestPullShared(t *testing.T) {
	needRoot(t)
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config()})
	var layers [][]byte
	for n := range 4 {
		layers = append(layers, tarText(t, fmt.Sprintf("f%d=%d", n, n)))
	}
	one, _ := reg.push("one", imageOf(t, v1.Config{}, append(slices.Clone(layers), tarText(t, "top=1"))...))
	two, digest := reg.push("two", imageOf(t, v1.Config{}, append(slices.Clone(layers), tarText(t, "top=2"))...))
	if _, err := s.Pull(t.Context(), one, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	reg.forget()
	if _, err := s.Pull(t.Context(), two, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := reg.asked("GET", "/blobs/"); n != 2 { // a config and a layer
		t.Errorf("got %d blobs of the second image; want its config and one layer", n)
	}
	inRoot(t, s, two.WithDigest(digest).String(), func(root string) {
		if got := string(read(t, filepath.Join(root, "top"))) + string(read(t, filepath.Join(root, "f3"))); got != "23" {
			t.Errorf("got %q; want 23", got)
		}
	})
}

func TestPullIndex(t *testing.T) {
	needRoot(t)
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config()})
	mine := imageOf(t, v1.Config{}, tarText(t, "arch=mine"))
	theirs := platform(t, imageOf(t, v1.Config{}, tarText(t, "arch=theirs")), "s390x", v1.Config{})
	entry := func(img v1.Image, os, arch string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: os, Architecture: arch}}}
	}
	index := mutate.AppendManifests(empty.Index, entry(theirs, "linux", "s390x"), entry(mine, "linux", runtime.GOARCH), entry(empty.Image, "unknown", "unknown"))
	ref, digest := reg.push("multi", index)
	got, err := s.Pull(t.Context(), ref, PullOptions{})
	if err != nil || got.Digest != digest {
		t.Fatalf("got %q, %v; want the index %s", got.Digest, err, digest)
	}
	inRoot(t, s, ref.WithDigest(digest).String(), func(root string) {
		if text := string(read(t, filepath.Join(root, "arch"))); text != "mine" {
			t.Errorf("got the image %q; want mine", text)
		}
	})
	only, _ := reg.push("only", mutate.AppendManifests(empty.Index, entry(theirs, "linux", "s390x")))
	if _, err := s.Pull(t.Context(), only, PullOptions{}); err == nil || !strings.Contains(err.Error(), "only for linux/s390x") {
		t.Errorf("got %v; want that there is no image for this machine", err)
	}
	alone, _ := reg.push("alone", theirs)
	if _, err := s.Pull(t.Context(), alone, PullOptions{}); err == nil || !strings.Contains(err.Error(), "it is for linux/s390x") {
		t.Errorf("got %v; want that the image is for another machine", err)
	}
}

// ranges serves blobs with ranges, cutting connections after some bytes.
type ranges struct {
	reg    *testRegistry
	cut    int // bytes after which a blob's connection is cut; 0 never
	cuts   int // how often
	served int64
	starts []int64
}

func (c *ranges) serve(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
	if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
		return false
	}
	rec := &recorder{header: http.Header{}}
	whole := r.Clone(r.Context())
	whole.Header.Del("Range")
	next.ServeHTTP(rec, whole)
	body := rec.body.Bytes()
	c.reg.mu.Lock()
	defer c.reg.mu.Unlock()
	if rec.code == http.StatusOK {
		var from int64
		if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
			from, _ = strconv.ParseInt(strings.TrimSuffix(text, "-"), 10, 64)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(body)-1, len(body)))
			rec.code = http.StatusPartialContent
		}
		body = body[from:]
		c.starts = append(c.starts, from)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(rec.code)
	if c.cut > 0 && c.cuts > 0 && len(body) > c.cut {
		c.cuts--
		n, _ := w.Write(body[:c.cut])
		c.served += int64(n)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	n, _ := w.Write(body)
	c.served += int64(n)
	return true
}

type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(code int) {
	r.code = code
}
func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.body.Write(b)
}

// TestPullResumes cuts the connection three times within a layer: each byte is served once.
func TestPullResumes(t *testing.T) {
	needRoot(t)
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config()})
	img := imageOf(t, v1.Config{}, tarText(t, "big="+noise(1, 1<<20)))
	ref, digest := reg.push("big", img)
	c := &ranges{reg: reg, cut: 300_000, cuts: 3}
	reg.setSpoil(c.serve)
	if _, err := s.Pull(t.Context(), ref, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	reg.mu.Lock()
	served, starts, cuts := c.served, c.starts, c.cuts
	reg.mu.Unlock()
	if want := blobBytes(t, img); served != want || cuts != 0 {
		t.Errorf("got %d bytes served, starting at %d; want %d", served, starts, want)
	}
	inRoot(t, s, ref.WithDigest(digest).String(), func(root string) {
		if got := read(t, filepath.Join(root, "big")); string(got) != noise(1, 1<<20) {
			t.Error("the file is another")
		}
	})
}

func blobBytes(t *testing.T, img v1.Image) (sum int64) {
	t.Helper()
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	sum = m.Config.Size
	for _, l := range m.Layers {
		sum += l.Size
	}
	return sum
}

// TestPullGoesOn holds that a pull takes up what one before it had fetched, if that is what it should be.
func TestPullGoesOn(t *testing.T) {
	needRoot(t)
	for _, damage := range []bool{false, true} {
		reg := newRegistry(t, loginNone)
		s := newStore(t, Config{Registries: reg.config()})
		img := imageOf(t, v1.Config{}, tarText(t, "big="+noise(2, 1<<20)))
		ref, _ := reg.push("big", img)
		c := &ranges{reg: reg, cut: 500_000, cuts: 1}
		// After the cut nothing comes any more.
		reg.setSpoil(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			reg.mu.Lock()
			dead := c.cuts == 0
			reg.mu.Unlock()
			if dead && strings.Contains(r.URL.Path, "/blobs/") {
				http.Error(w, "", http.StatusServiceUnavailable)
				return true
			}
			return c.serve(w, r, next)
		})
		if _, err := s.Pull(t.Context(), ref, PullOptions{}); err == nil {
			t.Fatal("a pull that lacks a layer went well")
		}
		parts, _ := filepath.Glob(s.path("oci", "*"+partSuffix))
		i := slices.IndexFunc(parts, func(name string) bool { st, err := os.Stat(name); return err == nil && st.Size() >= 400_000 })
		if i < 0 {
			t.Fatalf("got %q; want a part of the layer kept", parts)
		}
		if damage {
			text := read(t, parts[i])
			text[1000] ^= 1
			if err := os.WriteFile(parts[i], text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again, err := New(s.cfg)
		if err != nil {
			t.Fatal(err)
		}
		reg.mu.Lock()
		c.cut, c.starts = 0, nil
		reg.mu.Unlock()
		reg.setSpoil(c.serve)
		if _, err := again.Pull(t.Context(), ref, PullOptions{}); err != nil {
			t.Fatal(err)
		}
		reg.mu.Lock()
		starts := c.starts
		reg.mu.Unlock()
		if want := map[bool]int{false: 1, true: 2}[damage]; len(starts) != want || starts[0] == 0 {
			t.Errorf("damage %t: got requests from bytes %d; want %d, the first from where it was cut", damage, starts, want)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPullMirror holds that mirrors are asked first, without credentials, and that the registry serves what they lack.
func TestPullMirror(t *testing.T) {
	needRoot(t)
	reg, mirror := newRegistry(t, loginBasic), newRegistry(t, loginNone)
	cfg := reg.config()
	cfg.RootCAs.AddCert(mirror.Certificate())
	cfg.Mirrors = map[string][]string{reg.host: {"127.0.0.1:1", mirror.host}}
	s := newStore(t, Config{Registries: cfg})
	both := imageOf(t, v1.Config{}, tarText(t, "a=both"))
	ref, _ := reg.push("both", both)
	mirror.push("both", both)
	lone, _ := reg.push("lone", imageOf(t, v1.Config{}, tarText(t, "a=lone")))
	mirror.setSpoil(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Header.Get("Authorization") != "" {
			t.Error("the mirror was given credentials")
		}
		return false
	})
	if _, err := s.Pull(t.Context(), ref, userSecret); err != nil || len(reg.all()) > 0 || mirror.asked("GET", "/blobs/") != 2 {
		t.Errorf("got %v, %q of the registry and %q of the mirror", err, reg.all(), mirror.all())
	}
	if _, err := s.Pull(t.Context(), lone, userSecret); err != nil || reg.asked("GET", "/blobs/") != 2 {
		t.Errorf("got %v, %q of the registry; want what the mirror lacks", err, reg.all())
	}
}

// TestPullLyingMirror holds that what a mirror sends is not believed, and does not keep the image from coming.
func TestPullLyingMirror(t *testing.T) {
	needRoot(t)
	reg, mirror := newRegistry(t, loginNone), newRegistry(t, loginNone)
	cfg := reg.config()
	cfg.RootCAs.AddCert(mirror.Certificate())
	cfg.Mirrors = map[string][]string{reg.host: {mirror.host}}
	s := newStore(t, Config{Registries: cfg})
	img := imageOf(t, v1.Config{}, tarText(t, "a=1"))
	ref, digest := reg.push("a", img)
	mirror.push("a", img)
	mirror.setSpoil(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		rec := &recorder{header: http.Header{}}
		next.ServeHTTP(rec, r)
		_, _ = w.Write(make([]byte, rec.body.Len()))
		return true
	})
	if _, err := s.Pull(t.Context(), ref, PullOptions{}); err != nil || reg.asked("GET", "/blobs/") != 2 {
		t.Errorf("got %v, %q of the registry; want all blobs from there", err, reg.all())
	}
	inRoot(t, s, ref.WithDigest(digest).String(), func(root string) {
		if got := string(read(t, filepath.Join(root, "a"))); got != "1" {
			t.Errorf("got %q; want 1", got)
		}
	})
}

// TestPullTogether pulls images that share layers at the same time, and takes away meanwhile: each blob moves once.
func TestPullTogether(t *testing.T) {
	needRoot(t)
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config()})
	base := tarText(t, "base="+noise(4, 200_000))
	var refs []reference.Reference
	for n := range 3 {
		r, digest := reg.push(fmt.Sprintf("app%d", n), imageOf(t, v1.Config{}, base, tarText(t, fmt.Sprintf("own=%d", n))))
		refs = append(refs, r.WithDigest(digest), r)
	}
	var wg sync.WaitGroup
	for _, r := range slices.Concat(refs, refs) {
		wg.Go(func() {
			if _, err := s.Pull(t.Context(), r, PullOptions{}); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := s.GC(t.Context(), Policy{All: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := reg.asked("GET", "/blobs/"); n != 1+2*3 {
		t.Errorf("got %d blobs moved; want the shared layer, and a config and a layer for each", n)
	}
	for n := range 3 {
		inRoot(t, s, refs[2*n].String(), func(root string) {
			if got := string(read(t, filepath.Join(root, "own"))); got != strconv.Itoa(n) {
				t.Errorf("got %q; want %d", got, n)
			}
		})
	}
}

// BenchmarkMountImage mounts images of few and many layers.
func BenchmarkMountImage(b *testing.B) {
	needRoot(b)
	reg := newRegistry(b, loginNone)
	for _, layers := range []int{1, 5, 30} {
		b.Run(strconv.Itoa(layers), func(b *testing.B) {
			s := newStore(b, Config{Registries: reg.config()})
			var all [][]byte
			for n := range layers {
				all = append(all, tarText(b, fmt.Sprintf("f%d=%d", n, n)))
			}
			ref, digest := reg.push(fmt.Sprintf("layers%d", layers), imageOf(b, v1.Config{}, all...))
			if _, err := s.Pull(b.Context(), ref, PullOptions{}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := s.Mount(b.Context(), Request{ID: "bench", Stack: ref.WithDigest(digest).String()}); err != nil {
					b.Fatal(err)
				}
				if err := s.Unmount(b.Context(), "bench"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestPullFiles holds what tars say that overlays make hard.
func TestPullFiles(t *testing.T) {
	needRoot(t)
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config(), IDMap: testIDs})
	sparse := strings.Repeat("\x00", 4<<20) + "end"
	capability := string([]byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	base := tarOfHeaders(t,
		entryOf("usr/lib/", "", tar.TypeDir), entryOf("lib", "usr/lib", tar.TypeSymlink), entryOf("etc/conf/old", "old", tar.TypeReg),
		entryOf("etc/conf/sub/old", "old", tar.TypeReg), entryOf("first", "shared", tar.TypeReg), entryOf("abs", "/usr/lib", tar.TypeSymlink),
		entryOf("sparse", sparse, tar.TypeReg), entryOf("dir/file", "x", tar.TypeReg), entryOf("ping", "x", tar.TypeReg, "security.capability", capability, "user.note", "hi", "trusted.overlay.redirect", "/etc"))
	above := tarOfHeaders(t,
		entryOf("lib/foo", "foo", tar.TypeReg), entryOf("abs/bar", "bar", tar.TypeReg), entryOf("etc/conf/new", "new", tar.TypeReg),
		entryOf("etc/conf/.wh..wh..opq", "", tar.TypeReg), entryOf("second", "first", tar.TypeLink), entryOf(".wh.dir", "", tar.TypeReg),
		entryOf("dir/other", "y", tar.TypeReg), deviceOf("abs/pipe", tar.TypeFifo, 0, 0))
	ref, digest := reg.push("files", imageOf(t, v1.Config{}, base, above))
	if _, err := s.Pull(t.Context(), ref, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	inRoot(t, s, ref.WithDigest(digest).String(), func(root string) {
		at := func(name string) string { return filepath.Join(root, name) }
		for name, want := range map[string]string{"usr/lib/foo": "foo", "usr/lib/bar": "bar", "etc/conf/new": "new", "second": "shared", "dir/other": "y", "sparse": sparse} {
			if got := string(read(t, at(name))); got != want {
				t.Errorf("%s: got %.20q; want %.20q", name, got, want)
			}
		}
		for _, name := range []string{"etc/conf/old", "etc/conf/sub", "dir/file", "etc/conf/.wh..wh..opq", ".wh.dir"} {
			if _, err := os.Lstat(at(name)); err == nil {
				t.Errorf("%s is there", name)
			}
		}
		if to, err := os.Readlink(at("lib")); err != nil || to != "usr/lib" {
			t.Errorf("got %q, %v for lib; want the link", to, err)
		}
		one, _ := os.Stat(at("first"))
		two, _ := os.Stat(at("second"))
		if !os.SameFile(one, two) {
			t.Error("a hard link to a lower layer's file is another file")
		}
		if used := blocks(t, at("sparse")); used > 1<<20 {
			t.Errorf("the sparse file takes %d bytes", used)
		}
		if got := xattr(t, at("ping"), "user.note"); got != "hi" {
			t.Errorf("got user.note %q; want hi", got)
		}
		if got := xattr(t, at("ping"), "trusted.overlay.redirect"); got != "" {
			t.Errorf("got trusted.overlay.redirect %q; want none", got)
		}
		if got := xattr(t, at("ping"), "security.capability"); len(got) != 24 || got[3] != 3 {
			t.Errorf("got the capability %q; want one of the container's namespace", got)
		}
		if st, err := os.Lstat(at("usr/lib/pipe")); err != nil || st.Mode() != os.ModeNamedPipe|0o666 {
			t.Errorf("got %v, %v; want a FIFO", st, err)
		}
		if uid, _ := ownerOf(t, at("usr/lib/foo")); uid != testIDs.Base {
			t.Errorf("got owner %d; want %d", uid, testIDs.Base)
		}
	})
}

func entryOf(name, text string, kind byte, xattrs ...string) *tarEntry {
	h := &tar.Header{Name: name, Typeflag: kind, Mode: 0o755, Format: tar.FormatPAX, PAXRecords: map[string]string{}}
	for i := 0; i < len(xattrs); i += 2 {
		h.PAXRecords["SCHILY.xattr."+xattrs[i]] = xattrs[i+1]
	}
	e := &tarEntry{h: h}
	switch kind {
	case tar.TypeReg:
		h.Size, e.text = int64(len(text)), text
	default:
		h.Linkname = text
	}
	return e
}

type tarEntry struct {
	h    *tar.Header
	text string
}

func tarOfHeaders(t testing.TB, entries ...*tarEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if err := w.WriteHeader(e.h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPullManyLayers mounts as many layers as an image may have, whose names fill more than a mount's options.
func TestPullManyLayers(t *testing.T) {
	needRoot(t)
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config()})
	var layers [][]byte
	for n := range maxLayers {
		layers = append(layers, tarText(t, fmt.Sprintf("f%d=%d", n, n), fmt.Sprintf("top=%d", n)))
	}
	ref, digest := reg.push("many", imageOf(t, v1.Config{}, layers...))
	if _, err := s.Pull(t.Context(), ref, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	inRoot(t, s, ref.WithDigest(digest).String(), func(root string) {
		if got := string(read(t, filepath.Join(root, "top"))) + string(read(t, filepath.Join(root, "f0"))); got != "1260" {
			t.Errorf("got %q; want 126 and 0", got)
		}
	})
}
