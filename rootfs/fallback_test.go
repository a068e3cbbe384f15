package rootfs

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/registry/registrytest"
	"cupola/rootfs/tree"
)

// twoRegistries are one that has an image, another that it is published in as well, and a third that is down.
func twoRegistries(t *testing.T, mode registrytest.Login) (one, two *registrytest.Registry, down reference.Reference, cfg registry.Config) {
	t.Helper()
	one, two = registrytest.New(t, mode), registrytest.New(t, mode)
	gone := registrytest.New(t, mode)
	down = gone.Ref("team/app:v1")
	gone.Close()
	cfg = registry.Config{RootCAs: one.CAs()}
	cfg.RootCAs.AddCert(two.Certificate())
	return one, two, down, cfg
}

// collectAll takes every image away.
func collectAll(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.Images.GC(t.Context(), image.Policy{All: true, Grace: time.Nanosecond}); err != nil {
		t.Fatal(err)
	}
	if images, err := s.Images.List(); err != nil || len(images) > 0 {
		t.Fatalf("got %v, %v; want the store empty", images, err)
	}
}

// TestFallback holds that an image comes from the first registry that has it, the first time and after it was collected.
func TestFallback(t *testing.T) {
	needRoot(t)
	one, two, down, cfg := twoRegistries(t, registrytest.Basic)
	s := newStore(t, Config{Registries: cfg})
	img := registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1"))
	first, digest := one.Push("team/app:v1", img)
	second, _ := two.Push("mirrored/app:v1", img)
	var warnings []string
	o := userSecret
	o.Fallbacks = []reference.Reference{down, second}
	o.Others = func(r reference.Reference) registry.Auth {
		if r.Host == two.Host {
			return registry.Auth{Username: "user", Password: "secret"}
		}
		return registry.Auth{}
	}
	o.Warn = func(w string) { warnings = append(warnings, w) }
	if got, err := s.Images.Pull(t.Context(), first, o); err != nil || got.Digest != digest || two.Asked("GET", "/blobs/") > 0 {
		t.Fatalf("got %+v, %v and requests %q of the fallback", got, err, two.All())
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "the fallback "+down.String()+" was not looked at") {
		t.Errorf("got warnings %q; want one of the registry that is down", warnings)
	}
	if i, err := s.Images.Find(first.String()); err != nil || !slices.Equal(i.Fallbacks, []string{down.String(), second.String()}) {
		t.Errorf("got %+v, %v; want both fallbacks", i, err)
	}
	collectAll(t, s)
	one.Close()
	warnings, o.Fallbacks = nil, nil
	for _, r := range []reference.Reference{first, first.WithDigest(digest), first.WithoutDigest().WithDigest(digest)} {
		two.Forget()
		got, err := s.Images.Pull(t.Context(), r, o)
		if err != nil || got.Digest != digest || got.Reference != r.String() || two.Asked("GET", "/blobs/") == 0 {
			t.Fatalf("%s: got %+v, %v with its registry down", r, got, err)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], "took it from "+second.String()) {
			t.Errorf("got warnings %q; want where the image came from", warnings)
		}
		inRoot(t, s, r.WithDigest(digest).String(), func(root string) {
			if text := string(read(t, filepath.Join(root, "a"))); text != "1" {
				t.Errorf("got %q; want 1", text)
			}
		})
		warnings = nil
		collectAll(t, s)
	}
	// What the fallback has under the tag by now is another image, but it has the old one, too.
	two.Push("mirrored/app:v1", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=2")))
	if got, err := s.Images.Pull(t.Context(), first, o); err != nil || got.Digest != digest {
		t.Errorf("got %+v, %v; want the image that the reference meant", got, err)
	}
}

// TestFallbackOnFirstPull finds an image in the one registry that is up, under another name.
func TestFallbackOnFirstPull(t *testing.T) {
	needRoot(t)
	one, _, down, cfg := twoRegistries(t, registrytest.None)
	s := newStore(t, Config{Registries: cfg})
	ref, digest := one.Push("other/name:x", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1")))
	if got, err := s.Images.Pull(t.Context(), down, image.PullOptions{Fallbacks: []reference.Reference{ref}}); err != nil || got.Digest != digest || got.Reference != down.String() {
		t.Fatalf("got %+v, %v; want %s", got, err, digest)
	}
	// It was had of the fallback's repository: who may have the first one's only that registry can tell.
	one.Close()
	if _, err := s.Images.Pull(t.Context(), down.WithDigest(digest), image.PullOptions{}); err == nil {
		t.Error("an image was returned without asking any registry")
	}
	if _, err := s.Images.Pull(t.Context(), ref.WithDigest(digest), image.PullOptions{}); err != nil {
		t.Error(err)
	}
}

// TestFallbackOfAnotherDigest holds that no fallback passes off another image, and that the refusal names both.
func TestFallbackOfAnotherDigest(t *testing.T) {
	needRoot(t)
	one, two, down, cfg := twoRegistries(t, registrytest.None)
	s := newStore(t, Config{Registries: cfg})
	img := registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1"))
	first, digest := one.Push("app:v1", img)
	second, other := two.Push("app:v1", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=2")))
	want := "the fallback " + second.String() + " is " + other + ", but " + first.String() + " is " + digest
	if _, err := s.Images.Pull(t.Context(), first, image.PullOptions{Fallbacks: []reference.Reference{second}}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want %q", err, want)
	}
	if i, err := s.Images.List(); err != nil || len(i) > 0 {
		t.Errorf("got %v, %v; want nothing kept", i, err)
	}
	two.Push("app:v1", img)
	if _, err := s.Images.Pull(t.Context(), first, image.PullOptions{Fallbacks: []reference.Reference{down, second}}); err != nil {
		t.Fatal(err)
	}
	collectAll(t, s)
	one.Close()
	two.Spoil(nil)
	third, _ := two.Push("rebuilt:v1", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=3")))
	if err := tree.WriteJSON(s.store.Path("images", "fallbacks"), []map[string]any{{"Reference": first.String(), "Digest": digest, "Fallbacks": []string{down.String(), third.String()}}}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Images.Pull(t.Context(), first, image.PullOptions{})
	if err == nil || !strings.Contains(err.Error(), "there, not "+digest) || !strings.Contains(err.Error(), third.String()+": it is sha256:") {
		t.Errorf("got %v; want both digests named", err)
	}
}

// TestFallbackOfBlobs holds that a registry that breaks off in the middle of an image is helped out by the next.
func TestFallbackOfBlobs(t *testing.T) {
	needRoot(t)
	one, two, _, cfg := twoRegistries(t, registrytest.None)
	s := newStore(t, Config{Registries: cfg})
	img := registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "big="+registrytest.Noise(5, 1<<20)))
	first, digest := one.Push("app:v1", img)
	second, _ := two.Push("app:v1", img)
	c := &ranges{cut: 300_000, cuts: 100}
	one.Spoil(c.serve)
	got, err := s.Images.Pull(t.Context(), first, image.PullOptions{Fallbacks: []reference.Reference{second}})
	if err != nil || got.Digest != digest {
		t.Errorf("got %+v, %v; want %s", got, err, digest)
	}
}

func TestForgetFallbacks(t *testing.T) {
	needRoot(t)
	one, two, _, cfg := twoRegistries(t, registrytest.None)
	s := newStore(t, Config{Registries: cfg})
	img := registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1"))
	first, _ := one.Push("app:v1", img)
	second, _ := two.Push("app:v1", img)
	for _, c := range []struct {
		fallbacks []reference.Reference
		want      []string
	}{{nil, nil}, {[]reference.Reference{second}, []string{second.String()}}, {nil, []string{second.String()}}, {[]reference.Reference{}, nil}} {
		if _, err := s.Images.Pull(t.Context(), first, image.PullOptions{Fallbacks: c.fallbacks}); err != nil {
			t.Fatal(err)
		}
		if i, err := s.Images.Find(first.String()); err != nil || !slices.Equal(i.Fallbacks, c.want) {
			t.Errorf("%v: got %v, %v; want %v", c.fallbacks, i.Fallbacks, err, c.want)
		}
	}
	if _, err := s.Images.Pull(t.Context(), first, image.PullOptions{Fallbacks: []reference.Reference{{Scheme: reference.SchemeOCI, Name: "/x"}}}); err == nil || !strings.Contains(err.Error(), "in no registry") {
		t.Errorf("got %v of a layout for a fallback", err)
	}
}
