//go:build linux

package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/rootfs/reference"
	"cupola/runtime/contract"
)

// ownLayer is what a daemon adds to the images that it packs.
func ownLayer(t *testing.T) Archive {
	t.Helper()
	return Archive{Name: "own", Write: func(w io.Writer) error {
		_, err := w.Write(tarText(t, "tmp/lifecycle/launcher=#!"))
		return err
	}}
}

// mustPack packs a droplet on a stack.
func mustPack(t *testing.T, s *Store, stack string, l Layer) Packed {
	t.Helper()
	p, err := s.Pack(t.Context(), PackRequest{Stack: stack, Layers: []Layer{l}, Own: ownLayer(t), Labels: map[string]string{"droplet": "one"},
		Config: ImageConfig{User: "2000:2000", Env: []string{"A=b"}, Entrypoint: []string{"/tmp/lifecycle/launcher", "app"}, Cmd: []string{"run", ""}, WorkingDir: "/home/vcap", ExposedPorts: []string{"8080/tcp"}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pushed brings a packed image to a registry.
func (reg *testRegistry) pushed(s *Store, p Packed, l Layer, repo string) reference.Reference {
	reg.t.Helper()
	ref, err := reg.config().Push(reg.t.Context(), Push{Packed: p, To: reg.ref(repo), Auth: Auth{"user", "secret"},
		Open: func(_ context.Context, layer string) (io.ReadCloser, error) {
			return s.OpenPacked(p.Digest, l.Digest, layer)
		}})
	if err != nil {
		reg.t.Fatal(err)
	}
	if ref.Digest != p.Digest || ref.Tag != "" {
		reg.t.Errorf("got %s; want it by the digest %s", ref, p.Digest)
	}
	return ref
}

// TestPack packs a droplet on stacks of each kind, and holds that what another store pulls is what a container has here.
func TestPack(t *testing.T) {
	needRoot(t)
	for _, mode := range []login{loginBasic, loginToken} {
		t.Run(string(mode), func(t *testing.T) {
			reg := newRegistry(t, mode)
			s, other := newStore(t, Config{Registries: reg.config(), IDMap: testIDs, Tools: []string{"ls"}}), newStore(t, Config{Registries: reg.config(), IDMap: testIDs})
			ref, digest := reg.push("stacks/base:1", testImage(t, nil))
			if _, err := s.Pull(t.Context(), ref, userSecret); err != nil {
				t.Fatal(err)
			}
			if _, err := s.AddImage(NewStack{Name: "named"}, digest); err != nil {
				t.Fatal(err)
			}
			tree := filepath.Join(t.TempDir(), "root.tar")
			if err := os.WriteFile(tree, tarText(t, "usr/bin/tool=2", "bin -> usr/bin", "keep=3", "etc/passwd=root:x:0:0::/root:/bin/sh\n", "bin/bash=#!"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Import(t.Context(), "tree", "", tree, nil); err != nil {
				t.Fatal(err)
			}
			l := droplet(t, "hello")
			for _, stack := range []string{ref.WithDigest(digest).String(), "named", "tree"} {
				p := mustPack(t, s, stack, l)
				reg.forget()
				to := reg.pushed(s, p, l, "apps/hello:1")
				if base, sent := len(p.Layers)-3, reg.asked("PATCH", "apps/hello"); stack != "tree" && (base != 3 || sent > 4) {
					t.Errorf("%s: %d layers are the stack's, and %d blobs were sent; want those of the stack mounted", stack, base, sent)
				}
				if _, err := other.Pull(t.Context(), to, userSecret); err != nil {
					t.Fatal(err)
				}
				inRoot(t, other, to.String(), func(root string) {
					checkImported(t, stack, root)
					for name, want := range map[string]string{"home/vcap/app/run": "hello", "tmp/lifecycle/launcher": "#!"} {
						if got := string(read(t, filepath.Join(root, name))); got != want {
							t.Errorf("%s: got %s %q; want %q", stack, name, got, want)
						}
					}
					for name, want := range map[string]uint32{"etc/passwd": 0, "home": 0, "home/vcap": contract.VcapID, "home/vcap/app": contract.VcapID, "home/vcap/app/run": contract.VcapID, "tmp/lifecycle/launcher": 0} {
						if uid, gid := ownerOf(t, filepath.Join(root, name)); uid != testIDs.Base+want || gid != testIDs.Base+want {
							t.Errorf("%s: got %s of %d:%d; want %d", stack, name, uid, gid, testIDs.Base+want)
						}
					}
				})
			}
		})
	}
}

// TestPackIsTheSame holds that a droplet is the same image each time, and that a stack is read once.
func TestPackIsTheSame(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDMap: testIDs, Tools: []string{"ls"}})
	l := droplet(t, "hello")
	was := mustPack(t, s, "minifs", l)
	stack := s.path("packed", strings.TrimPrefix(was.Layers[0].Digest, "sha256:"))
	first, err := os.Stat(stack)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Prune(t.Context(), func(string) bool { return false }); err != nil { // the droplet is unpacked anew
		t.Fatal(err)
	}
	if diff := cmp.Diff(was, mustPack(t, s, "minifs", l)); diff != "" {
		t.Errorf("packed again (-was +is):\n%s", diff)
	}
	if again, err := os.Stat(stack); err != nil || !os.SameFile(first, again) {
		t.Errorf("the stack was packed anew, %v", err)
	}

	// What nobody asked for since goes, and comes again.
	old := time.Now().Add(-packedAge - time.Hour)
	names, err := filepath.Glob(s.path("packed", "*"))
	if err != nil || len(names) < 4 {
		t.Fatalf("got %q, %v", names, err)
	}
	for _, name := range names {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.GC(t.Context(), Policy{All: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenPacked(was.Digest, l.Digest, was.Layers[0].Digest); !errors.Is(err, ErrNotPacked) {
		t.Errorf("got %v; want what is old taken away", err)
	}
	if diff := cmp.Diff(was, mustPack(t, s, "minifs", l)); diff != "" {
		t.Errorf("packed anew (-was +is):\n%s", diff)
	}
	for image, source := range map[string]string{was.Digest: strings.Repeat("a", 64), "sha256:../x": l.Digest, digestText([]byte("x")): l.Digest} {
		if _, err := s.OpenPacked(image, source, was.Layers[0].Digest); !errors.Is(err, ErrNotPacked) {
			t.Errorf("image %s of %s: got %v", image, source, err)
		}
	}
	if f, err := s.OpenPacked(was.Digest, l.Digest, was.Layers[0].Digest); err != nil {
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"no-such", "docker://registry.example.com/a@" + was.Digest} {
		if _, err := s.Pack(t.Context(), PackRequest{Stack: name, Layers: []Layer{l}, Own: ownLayer(t)}); err == nil {
			t.Errorf("%s: packed", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Pack(ctx, PackRequest{Stack: "minifs", Layers: []Layer{droplet(t, "other")}, Own: ownLayer(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want it to end with its context", err)
	}
	if left, err := filepath.Glob(s.path("packed", "*"+partSuffix)); err != nil || len(left) > 0 {
		t.Errorf("got %q, %v; want nothing half made", left, err)
	}
}

// TestPackForeign holds that of a machine's own files only those are packed that every user of it may read, and without what makes
// programs another's.
func TestPackForeign(t *testing.T) {
	t.Parallel()
	root := machine(t, "usr/bin/su", "usr/bin/secret", "usr/lib/private/key", "usr/local/etc/conf", "usr/share/a", "usr/bin/link -> su", "etc/ld.so.cache")
	empty := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"usr/bin/su": fs.ModeSetuid | 0o755, "usr/bin/secret": 0o640, "usr/lib/private": 0o750} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(root, "usr/share/a"), filepath.Join(root, "usr/share/b")); err != nil {
		t.Fatal(err)
	}
	own := machine(t, "usr/not-seen", "etc/passwd", "etc/ld.so.cache")
	trees := []subtree{{dir: own}, {dir: filepath.Join(root, "usr"), at: "usr", foreign: true}, {dir: filepath.Join(root, "etc/ld.so.cache"), at: "etc/ld.so.cache", foreign: true},
		{dir: empty, at: "usr/local/etc", foreign: true}}
	var text bytes.Buffer
	if err := packTrees(t.Context(), trees, IDMap{}, &text); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for r := tar.NewReader(&text); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := got[h.Name]; twice {
			t.Errorf("%s is there twice", h.Name)
		}
		got[h.Name] = h.Mode
	}
	want := []string{"etc/", "etc/ld.so.cache", "etc/passwd", "usr/", "usr/bin/", "usr/bin/link", "usr/bin/su", "usr/lib/", "usr/lib/private/", "usr/local/", "usr/local/etc/", "usr/share/", "usr/share/a", "usr/share/b"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got["usr/bin/su"] != 0o755 {
		t.Errorf("got su with the mode %o", got["usr/bin/su"])
	}

	before, _, err := fingerprintTrees(t.Context(), trees, IDMap{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(root, "usr/share/a"), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if after, bytes, err := fingerprintTrees(t.Context(), trees, IDMap{}); err != nil || after == before || bytes == 0 {
		t.Errorf("a file changed: got %s, %s, %d bytes, %v", before, after, bytes, err)
	}
}

// packedOf is an image of layers' texts, which no store has.
func packedOf(t *testing.T, texts ...string) (Packed, map[string][]byte) {
	t.Helper()
	blobs := map[string][]byte{}
	var layers []PackedLayer
	for _, text := range texts {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		plain := tarText(t, "file="+text)
		if _, err := z.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		l := PackedLayer{Digest: digestText(b.Bytes()), DiffID: digestText(plain), MediaType: ociLayer(""), Bytes: int64(b.Len())}
		blobs[l.Digest] = b.Bytes()
		layers = append(layers, l)
	}
	p, err := PackRequest{Config: ImageConfig{Cmd: []string{"run"}}}.compose(layers, "sha256:stack")
	if err != nil {
		t.Fatal(err)
	}
	return p, blobs
}

// pushOf is a push of an image that works.
func pushOf(t *testing.T, reg *testRegistry, texts ...string) Push {
	t.Helper()
	p, blobs := packedOf(t, texts...)
	return Push{Packed: p, To: reg.ref("team/app:1"), Auth: Auth{"user", "secret"}, Open: func(_ context.Context, layer string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(blobs[layer])), nil
	}}
}
