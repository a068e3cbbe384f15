package rootfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
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

	"cupola/rootfs/image"
	"cupola/rootfs/oci"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/registry/registrytest"
	"cupola/rootfs/root"
)

var userSecret = image.PullOptions{Username: "user", Password: "secret"}

// inRoot mounts what names and calls do with the root's path.
func inRoot(t *testing.T, s *Store, names string, do func(root string)) {
	t.Helper()
	root, err := s.Mount(t.Context(), root.Request{ID: "test", Stack: names, DiskBytes: 16 << 20})
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
	for _, mode := range []registrytest.Login{registrytest.None, registrytest.Basic, registrytest.Token} {
		t.Run(string(mode), func(t *testing.T) {
			reg := registrytest.New(t, mode)
			s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}, IDs: testIDs})
			cfg := v1.Config{User: "app", Env: []string{"A=b"}, Entrypoint: []string{"/run"}, Cmd: []string{"x"}, WorkingDir: "/srv",
				ExposedPorts: map[string]struct{}{"8080/tcp": {}, "53/udp": {}}}
			base := testImage(t, nil)
			img := registrytest.Platform(t, base, runtime.GOARCH, cfg)
			ref, digest := reg.Push("team/app:v1", img)
			var last image.LayerProgress
			o := userSecret
			o.Progress = func(p image.LayerProgress) { last = p }
			got, err := s.Images.Pull(t.Context(), ref, o)
			if err != nil {
				t.Fatal(err)
			}
			if got.Digest != digest || got.Reference != ref.String() || len(got.Layers) != 3 || got.Compat != "cflinuxfs4" || got.Arch != runtime.GOARCH || got.Bytes == 0 {
				t.Errorf("got %+v", got)
			}
			if c := got.Config; c.User != "app" || c.WorkingDir != "/srv" || !slices.Equal(c.ExposedPorts, []string{"53/udp", "8080/tcp"}) || c.Entrypoint[0] != "/run" || c.Cmd[0] != "x" || c.Env[0] != "A=b" {
				t.Errorf("got config %+v", c)
			}
			if last.Phase != image.PhaseHere || last.Layers != 3 {
				t.Errorf("got %+v as the last progress; want a layer that is done", last)
			}
			inRoot(t, s, ref.WithDigest(digest).String(), func(root string) { checkImported(t, "pulled", root) })
			if _, err := s.Mount(t.Context(), root.Request{ID: "tag", Stack: ref.String()}); !errors.Is(err, image.ErrNotPulled) {
				t.Errorf("got %v of a root by its tag; want ErrNotPulled", err)
			}
			other := ref.WithDigest(someDigest)
			if _, err := s.Mount(t.Context(), root.Request{ID: "other", Stack: other.String()}); !errors.Is(err, image.ErrNotPulled) {
				t.Errorf("got %v of another image; want ErrNotPulled", err)
			}
			checkSecondPull(t, reg, s, ref, digest)
		})
	}
}

// checkSecondPull checks that an image present by its digest needs no registry, also after the registry has gone.
func checkSecondPull(t *testing.T, reg *registrytest.Registry, s *Store, ref reference.Reference, digest string) {
	t.Helper()
	reg.Forget()
	if _, err := s.Images.Pull(t.Context(), ref.WithDigest(digest), image.PullOptions{}); err != nil || reg.Asked("", "") > 0 || len(reg.All()) > 0 {
		t.Errorf("got %v and requests %q of a second pull; want none", err, reg.All())
	}
	if _, err := s.Images.Pull(t.Context(), ref, userSecret); err != nil || reg.Asked("GET", "/blobs/") > 0 {
		t.Errorf("got %v and requests %q of a second pull by the tag; want no blob", err, reg.All())
	}
	// Another repository's image with the same digest is another's: the registry is asked whether one may have it.
	if _, err := s.Images.Pull(t.Context(), reg.Ref("other/app").WithDigest(digest), userSecret); !errors.Is(err, registry.ErrMissing) {
		t.Errorf("got %v of the digest in another repository; want ErrImageMissing", err)
	}
	reg.Close()
	again, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Images.Pull(t.Context(), ref.WithDigest(digest), image.PullOptions{}); err != nil {
		t.Errorf("got %v after a restart without the registry", err)
	}
	inRoot(t, again, ref.WithDigest(digest).String(), func(root string) { checkImported(t, "again", root) })
}

// TestPullOpen takes an image from the cache when the registry does not answer: by its digest, and only one that everybody may have.
func TestPullOpen(t *testing.T) {
	needRoot(t)
	asking := userSecret
	asking.Ask = true
	for login, open := range map[registrytest.Login]bool{registrytest.None: true, registrytest.Basic: false} {
		reg := registrytest.New(t, login)
		s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
		ref, digest := reg.Push("an/image", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1")))
		if _, err := s.Images.Pull(t.Context(), ref, asking); err != nil {
			t.Fatal(err)
		}
		anonymous := image.PullOptions{Ask: true}
		if _, err := s.Images.Pull(t.Context(), ref, anonymous); (err == nil) != open {
			t.Fatalf("%s: got %v without credentials", login, err)
		}
		reg.Close()
		var warned []string
		anonymous.Warn = func(what string) { warned = append(warned, what) }
		if img, err := s.Images.Pull(t.Context(), ref.WithDigest(digest), anonymous); (err == nil) != open || open && (img.Digest != digest || len(warned) != 1) {
			t.Errorf("%s: got %+v, %v, warnings %q without the registry; want it from the cache: %t", login, img, err, warned, open)
		}
		if _, err := s.Images.Pull(t.Context(), ref, anonymous); err == nil {
			t.Errorf("%s: got an image by its tag, without the registry", login)
		}
	}
}

func TestPullDenied(t *testing.T) {
	needRoot(t)
	for _, mode := range []registrytest.Login{registrytest.Basic, registrytest.Token} {
		reg := registrytest.New(t, mode)
		s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
		ref, digest := reg.Push("private", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1")))
		for _, o := range []image.PullOptions{{}, {Username: "user", Password: "wrong"}, {Password: "secret"}} {
			if _, err := s.Images.Pull(t.Context(), ref, o); !errors.Is(err, registry.ErrDenied) || strings.Contains(err.Error(), "wrong)") {
				t.Errorf("%s: got %v; want ErrImageDenied", mode, err)
			}
			if _, err := s.Images.Pull(t.Context(), ref.WithDigest(digest), o); !errors.Is(err, registry.ErrDenied) {
				t.Errorf("%s: got %v by digest; want ErrImageDenied", mode, err)
			}
		}
		checkAsked(t, reg, s, ref.WithDigest(digest))
	}
}

// checkAsked checks that the registry decides who may have an image that is in the cache.
func checkAsked(t *testing.T, reg *registrytest.Registry, s *Store, ref reference.Reference) {
	t.Helper()
	if _, err := s.Images.Pull(t.Context(), ref, userSecret); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{Ask: true}); !errors.Is(err, registry.ErrDenied) {
		t.Errorf("got %v of an image in the cache, without credentials; want ErrDenied", err)
	}
	reg.Forget()
	asking := userSecret
	asking.Ask = true
	if _, err := s.Images.Pull(t.Context(), ref, asking); err != nil || len(reg.All()) == 0 || reg.Asked("GET", "/blobs/") > 0 {
		t.Errorf("got %v and requests %q with credentials; want the image, and no blob asked for", err, reg.All())
	}
}

// TestPullShared holds that layers that two images share are moved once.
func TestPullShared(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	var layers [][]byte
	for n := range 4 {
		layers = append(layers, registrytest.Tar(t, fmt.Sprintf("f%d=%d", n, n)))
	}
	one, _ := reg.Push("one", registrytest.Image(t, v1.Config{}, append(slices.Clone(layers), registrytest.Tar(t, "top=1"))...))
	two, digest := reg.Push("two", registrytest.Image(t, v1.Config{}, append(slices.Clone(layers), registrytest.Tar(t, "top=2"))...))
	if _, err := s.Images.Pull(t.Context(), one, image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	reg.Forget()
	if _, err := s.Images.Pull(t.Context(), two, image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := reg.Asked("GET", "/blobs/"); n != 2 { // a config and a layer
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
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	mine := registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "arch=mine"))
	theirs := registrytest.Platform(t, registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "arch=theirs")), "s390x", v1.Config{})
	entry := func(img v1.Image, os, arch string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: os, Architecture: arch}}}
	}
	index := mutate.AppendManifests(empty.Index, entry(theirs, "linux", "s390x"), entry(mine, "linux", runtime.GOARCH), entry(empty.Image, "unknown", "unknown"))
	ref, digest := reg.Push("multi", index)
	got, err := s.Images.Pull(t.Context(), ref, image.PullOptions{})
	if err != nil || got.Digest != digest {
		t.Fatalf("got %q, %v; want the index %s", got.Digest, err, digest)
	}
	inRoot(t, s, ref.WithDigest(digest).String(), func(root string) {
		if text := string(read(t, filepath.Join(root, "arch"))); text != "mine" {
			t.Errorf("got the image %q; want mine", text)
		}
	})
	only, _ := reg.Push("only", mutate.AppendManifests(empty.Index, entry(theirs, "linux", "s390x")))
	if _, err := s.Images.Pull(t.Context(), only, image.PullOptions{}); err == nil || !strings.Contains(err.Error(), "only for linux/s390x") {
		t.Errorf("got %v; want that there is no image for this machine", err)
	}
	alone, _ := reg.Push("alone", theirs)
	if _, err := s.Images.Pull(t.Context(), alone, image.PullOptions{}); err == nil || !strings.Contains(err.Error(), "it is for linux/s390x") {
		t.Errorf("got %v; want that the image is for another machine", err)
	}
}

// ranges serves blobs with ranges, cutting connections after some bytes.
type ranges struct {
	mu     sync.Mutex
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
	c.mu.Lock()
	defer c.mu.Unlock()
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
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	img := registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "big="+registrytest.Noise(1, 1<<20)))
	ref, digest := reg.Push("big", img)
	c := &ranges{cut: 300_000, cuts: 3}
	reg.Spoil(c.serve)
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	served, starts, cuts := c.served, c.starts, c.cuts
	c.mu.Unlock()
	if want := blobBytes(t, img); served != want || cuts != 0 {
		t.Errorf("got %d bytes served, starting at %d; want %d", served, starts, want)
	}
	inRoot(t, s, ref.WithDigest(digest).String(), func(root string) {
		if got := read(t, filepath.Join(root, "big")); string(got) != registrytest.Noise(1, 1<<20) {
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
		reg := registrytest.New(t, registrytest.None)
		s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
		img := registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "big="+registrytest.Noise(2, 1<<20)))
		ref, _ := reg.Push("big", img)
		c := &ranges{cut: 500_000, cuts: 1}
		// After the cut nothing comes any more.
		reg.Spoil(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			c.mu.Lock()
			dead := c.cuts == 0
			c.mu.Unlock()
			if dead && strings.Contains(r.URL.Path, "/blobs/") {
				http.Error(w, "", http.StatusServiceUnavailable)
				return true
			}
			return c.serve(w, r, next)
		})
		if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err == nil {
			t.Fatal("a pull that lacks a layer went well")
		}
		parts, _ := filepath.Glob(s.store.Path("oci", "*.part"))
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
		c.mu.Lock()
		c.cut, c.starts = 0, nil
		c.mu.Unlock()
		reg.Spoil(c.serve)
		if _, err := again.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		starts := c.starts
		c.mu.Unlock()
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
	reg, mirror := registrytest.New(t, registrytest.Basic), registrytest.New(t, registrytest.None)
	cfg := registry.Config{RootCAs: reg.CAs()}
	cfg.RootCAs.AddCert(mirror.Certificate())
	cfg.Mirrors = map[string][]string{reg.Host: {"127.0.0.1:1", mirror.Host}}
	s := newStore(t, Config{Registries: cfg})
	both := registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=both"))
	ref, _ := reg.Push("both", both)
	mirror.Push("both", both)
	lone, _ := reg.Push("lone", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=lone")))
	mirror.Spoil(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Header.Get("Authorization") != "" {
			t.Error("the mirror was given credentials")
		}
		return false
	})
	if _, err := s.Images.Pull(t.Context(), ref, userSecret); err != nil || len(reg.All()) > 0 || mirror.Asked("GET", "/blobs/") != 2 {
		t.Errorf("got %v, %q of the registry and %q of the mirror", err, reg.All(), mirror.All())
	}
	if _, err := s.Images.Pull(t.Context(), lone, userSecret); err != nil || reg.Asked("GET", "/blobs/") != 2 {
		t.Errorf("got %v, %q of the registry; want what the mirror lacks", err, reg.All())
	}
}

// TestPullLyingMirror holds that what a mirror sends is not believed, and does not keep the image from coming.
func TestPullLyingMirror(t *testing.T) {
	needRoot(t)
	reg, mirror := registrytest.New(t, registrytest.None), registrytest.New(t, registrytest.None)
	cfg := registry.Config{RootCAs: reg.CAs()}
	cfg.RootCAs.AddCert(mirror.Certificate())
	cfg.Mirrors = map[string][]string{reg.Host: {mirror.Host}}
	s := newStore(t, Config{Registries: cfg})
	img := registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1"))
	ref, digest := reg.Push("a", img)
	mirror.Push("a", img)
	mirror.Spoil(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		rec := &recorder{header: http.Header{}}
		next.ServeHTTP(rec, r)
		_, _ = w.Write(make([]byte, rec.body.Len()))
		return true
	})
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil || reg.Asked("GET", "/blobs/") != 2 {
		t.Errorf("got %v, %q of the registry; want all blobs from there", err, reg.All())
	}
	inRoot(t, s, ref.WithDigest(digest).String(), func(root string) {
		if got := string(read(t, filepath.Join(root, "a"))); got != "1" {
			t.Errorf("got %q; want 1", got)
		}
	})
}

// TestPullTogether pulls images that share layers at the same time, and removes images meanwhile: each blob moves once.
func TestPullTogether(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	base := registrytest.Tar(t, "base="+registrytest.Noise(4, 200_000))
	var refs []reference.Reference
	for n := range 3 {
		r, digest := reg.Push(fmt.Sprintf("app%d", n), registrytest.Image(t, v1.Config{}, base, registrytest.Tar(t, fmt.Sprintf("own=%d", n))))
		refs = append(refs, r.WithDigest(digest), r)
	}
	var wg sync.WaitGroup
	for _, r := range slices.Concat(refs, refs) {
		wg.Go(func() {
			if _, err := s.Images.Pull(t.Context(), r, image.PullOptions{}); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := s.Images.GC(t.Context(), image.Policy{All: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := reg.Asked("GET", "/blobs/"); n != 1+2*3 {
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
	reg := registrytest.New(b, registrytest.None)
	for _, layers := range []int{1, 5, 30} {
		b.Run(strconv.Itoa(layers), func(b *testing.B) {
			s := newStore(b, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
			var all [][]byte
			for n := range layers {
				all = append(all, registrytest.Tar(b, fmt.Sprintf("f%d=%d", n, n)))
			}
			ref, digest := reg.Push(fmt.Sprintf("layers%d", layers), registrytest.Image(b, v1.Config{}, all...))
			if _, err := s.Images.Pull(b.Context(), ref, image.PullOptions{}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := s.Mount(b.Context(), root.Request{ID: "bench", Stack: ref.WithDigest(digest).String()}); err != nil {
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
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}, IDs: testIDs})
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
	ref, digest := reg.Push("files", registrytest.Image(t, v1.Config{}, base, above))
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
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
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	var layers [][]byte
	for n := range oci.MaxLayers {
		layers = append(layers, registrytest.Tar(t, fmt.Sprintf("f%d=%d", n, n), fmt.Sprintf("top=%d", n)))
	}
	ref, digest := reg.Push("many", registrytest.Image(t, v1.Config{}, layers...))
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	inRoot(t, s, ref.WithDigest(digest).String(), func(root string) {
		if got := string(read(t, filepath.Join(root, "top"))) + string(read(t, filepath.Join(root, "f0"))); got != "1260" {
			t.Errorf("got %q; want 126 and 0", got)
		}
	})
}
