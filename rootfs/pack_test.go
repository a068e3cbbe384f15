package rootfs

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/rootfs/image"
	"cupola/rootfs/layer"
	"cupola/rootfs/oci"
	"cupola/rootfs/packed"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/registry/registrytest"
	"cupola/rootfs/stack"
	"cupola/runtime/contract"
)

// ownLayer is what a daemon adds to the images that it packs.
func ownLayer(t *testing.T) packed.Archive {
	t.Helper()
	return packed.Archive{Name: "own", Write: func(w io.Writer) error {
		_, err := w.Write(registrytest.Tar(t, "tmp/lifecycle/launcher=#!"))
		return err
	}}
}

// packRequest is one for a droplet on a stack.
func packRequest(t *testing.T, stack string, l layer.Layer) packed.Request {
	t.Helper()
	return packed.Request{Stack: stack, Layers: []layer.Layer{l}, Own: ownLayer(t), Labels: map[string]string{"droplet": "one"},
		Config: image.Config{User: "2000:2000", Env: []string{"A=b"}, Entrypoint: []string{"/tmp/lifecycle/launcher", "app"}, Cmd: []string{"run", ""}, WorkingDir: "/home/vcap", ExposedPorts: []string{"8080/tcp"}}}
}

// mustPack packs a droplet on a stack.
func mustPack(t *testing.T, s *Store, stack string, l layer.Layer) registry.Image {
	t.Helper()
	p, err := s.Packed.Pack(t.Context(), packRequest(t, stack, l))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pushed brings a packed image to a registry.
func pushed(t *testing.T, reg *registrytest.Registry, s *Store, p registry.Image, l layer.Layer, repo string) reference.Reference {
	t.Helper()
	ref, err := registry.Config{RootCAs: reg.CAs()}.Push(t.Context(), registry.Push{Image: p, To: reg.Ref(repo), Auth: registry.Auth{Username: "user", Password: "secret"},
		Open: func(_ context.Context, digest string) (io.ReadCloser, error) {
			return s.Packed.Open(p.Digest, l.Digest, digest)
		}})
	if err != nil {
		t.Fatal(err)
	}
	if ref.Digest != p.Digest || ref.Tag != "" {
		t.Errorf("got %s; want it by the digest %s", ref, p.Digest)
	}
	return ref
}

// TestPack packs a droplet on stacks of each kind, and holds that what another store pulls is what a container has here.
func TestPack(t *testing.T) {
	needRoot(t)
	for _, mode := range []registrytest.Login{registrytest.Basic, registrytest.Token} {
		t.Run(string(mode), func(t *testing.T) {
			reg := registrytest.New(t, mode)
			s, other := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}, IDs: testIDs, Tools: []string{"ls"}}), newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}, IDs: testIDs})
			ref, digest := reg.Push("stacks/base:1", testImage(t, nil))
			if _, err := s.Images.Pull(t.Context(), ref, userSecret); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Stacks.AddImage(stack.Spec{Name: "named"}, digest); err != nil {
				t.Fatal(err)
			}
			tree := filepath.Join(t.TempDir(), "root.tar")
			if err := os.WriteFile(tree, registrytest.Tar(t, "usr/bin/tool=2", "bin -> usr/bin", "keep=3", "etc/passwd=root:x:0:0::/root:/bin/sh\n", "bin/bash=#!"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Stacks.Import(t.Context(), "tree", "", tree, nil); err != nil {
				t.Fatal(err)
			}
			l := droplet(t, "hello")
			for _, stack := range []string{ref.WithDigest(digest).String(), "named", "tree"} {
				p := mustPack(t, s, stack, l)
				reg.Forget()
				to := pushed(t, reg, s, p, l, "apps/hello:1")
				if base, sent := len(p.Layers)-3, reg.Asked("PATCH", "apps/hello"); stack != "tree" && (base != 3 || sent > 4) {
					t.Errorf("%s: %d layers are the stack's, and %d blobs were sent; want those of the stack mounted", stack, base, sent)
				}
				if _, err := other.Images.Pull(t.Context(), to, userSecret); err != nil {
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
	s := newStore(t, Config{IDs: testIDs, Tools: []string{"ls"}})
	l := droplet(t, "hello")
	was := mustPack(t, s, "minifs", l)
	stack := s.store.Path("packed", strings.TrimPrefix(was.Layers[0].Digest, "sha256:"))
	first, err := os.Stat(stack)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Layers.Prune(t.Context(), func(string) bool { return false }, 0); err != nil { // the droplet is unpacked again
		t.Fatal(err)
	}
	if s.Packed, err = packed.New(s.store, s.Images, s.Stacks, s.Layers); err != nil { // as after a restart
		t.Fatal(err)
	}
	if diff := cmp.Diff(was, mustPack(t, s, "minifs", l)); diff != "" {
		t.Errorf("packed again (-was +is):\n%s", diff)
	}
	moment := packRequest(t, "minifs", l)
	moment.Progress = func(what string, _, _ int64) { t.Errorf("%s was packed again a moment later", what) }
	if p, err := s.Packed.Pack(t.Context(), moment); err != nil || p.Digest != was.Digest {
		t.Errorf("a moment later: got %s, %v; want %s", p.Digest, err, was.Digest)
	}
	if again, err := os.Stat(stack); err != nil || !os.SameFile(first, again) {
		t.Errorf("the stack was packed again, %v", err)
	}

	// What was not requested since is removed, and packed again on request.
	old := time.Now().Add(-25 * time.Hour)
	names, err := filepath.Glob(s.store.Path("packed", "*"))
	if err != nil || len(names) < 4 {
		t.Fatalf("got %q, %v", names, err)
	}
	for _, name := range names {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Images.GC(t.Context(), image.Policy{All: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Packed.Open(was.Digest, l.Digest, was.Layers[0].Digest); !errors.Is(err, packed.ErrNotFound) {
		t.Errorf("got %v; want old images removed", err)
	}
	if diff := cmp.Diff(was, mustPack(t, s, "minifs", l)); diff != "" {
		t.Errorf("packed again (-was +is):\n%s", diff)
	}
	for image, source := range map[string]string{was.Digest: strings.Repeat("a", 64), "sha256:../x": l.Digest, oci.Digest([]byte("x")): l.Digest} {
		if _, err := s.Packed.Open(image, source, was.Layers[0].Digest); !errors.Is(err, packed.ErrNotFound) {
			t.Errorf("image %s of %s: got %v", image, source, err)
		}
	}
	if f, err := s.Packed.Open(was.Digest, l.Digest, was.Layers[0].Digest); err != nil {
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"no-such", "docker://registry.example.com/a@" + was.Digest} {
		if _, err := s.Packed.Pack(t.Context(), packed.Request{Stack: name, Layers: []layer.Layer{l}, Own: ownLayer(t)}); err == nil {
			t.Errorf("%s: packed", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Packed.Pack(ctx, packed.Request{Stack: "minifs", Layers: []layer.Layer{droplet(t, "other")}, Own: ownLayer(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want it to end with its context", err)
	}
	if left, err := filepath.Glob(s.store.Path("packed", "*.part")); err != nil || len(left) > 0 {
		t.Errorf("got %q, %v; want nothing half made", left, err)
	}
}
