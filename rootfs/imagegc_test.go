package rootfs

import (
	"bufio"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	"cupola/rootfs/root"
	"cupola/rootfs/stack"
)

// age has an image used so long ago.
func age(t *testing.T, s *Store, digest string, d time.Duration) {
	t.Helper()
	then := time.Now().Add(-d)
	if err := os.Chtimes(s.store.Path("images", strings.TrimPrefix(digest, "sha256:")+".json"), then, then); err != nil {
		t.Fatal(err)
	}
}

func TestGC(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	base := registrytest.Tar(t, "base="+registrytest.Noise(9, 100_000))
	digest := map[string]string{}
	refs := map[string]reference.Reference{}
	for n, name := range []string{"pinned", "stacked", "mounted", "fresh", "old", "older"} {
		r, d := reg.Push(name, registrytest.Image(t, v1.Config{}, base, registrytest.Tar(t, "own="+registrytest.Noise(uint64(n), 50_000))))
		if _, err := s.Images.Pull(t.Context(), r, image.PullOptions{}); err != nil {
			t.Fatal(err)
		}
		digest[name], refs[name] = d, r.WithDigest(d)
	}
	if _, err := s.Stacks.AddImage(stack.Spec{Name: "made"}, digest["stacked"]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Mount(t.Context(), root.Request{ID: "holds", Stack: refs["mounted"].String()}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pinned", "stacked", "mounted", "old"} {
		age(t, s, digest[name], 48*time.Hour)
	}
	age(t, s, digest["older"], 72*time.Hour)
	keep := func(d string) bool { return d == digest["pinned"] }
	gc := func(p image.Policy, want ...string) {
		t.Helper()
		p.Keep = keep
		r, err := s.Images.GC(t.Context(), p)
		var got []string
		for _, i := range r.Images {
			got = append(got, strings.TrimPrefix(refNames(i)[0], reg.Host+"/"))
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v: got %q, %v; want %q", p, got, err, want)
		}
	}
	gc(image.Policy{})
	gc(image.Policy{OlderThan: 100 * time.Hour})
	gc(image.Policy{MaxBytes: 1 << 40})
	gc(image.Policy{OlderThan: 60 * time.Hour}, "older")
	gc(image.Policy{MaxBytes: 1}, "old")
	gc(image.Policy{All: true})
	for _, name := range []string{"pinned", "stacked", "mounted", "fresh"} {
		inRoot(t, s, refs[name].String(), func(root string) {
			if len(read(t, filepath.Join(root, "base"))) != 100_000 {
				t.Errorf("%s: its file is another", name)
			}
		})
	}
	if _, err := s.Mount(t.Context(), root.Request{ID: "x", Stack: refs["old"].String()}); !errors.Is(err, image.ErrNotPulled) {
		t.Errorf("got %v for a removed image; want ErrNotPulled", err)
	}
	if err := s.Unmount(t.Context(), "holds"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stacks.Remove("made"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pinned", "stacked", "mounted", "fresh"} {
		age(t, s, digest[name], time.Hour)
	}
	keep = nil
	gc(image.Policy{All: true}, "fresh", "mounted", "pinned", "stacked")
	for _, dir := range []string{"chains", "oci", "images"} {
		if left, err := os.ReadDir(s.store.Path(dir)); err != nil || len(left) > 0 {
			t.Errorf("got %v, %v left in %s", left, err, dir)
		}
	}
}

func refNames(i image.Info) (names []string) {
	for _, ref := range i.References {
		name, _, _ := strings.Cut(strings.TrimPrefix(ref, "docker://"), "@")
		names = append(names, strings.TrimSuffix(name, ":latest"))
	}
	return names
}

// TestImageStack holds that a stack made of an image is one like others, also after a restart.
func TestImageStack(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	ref, digest := reg.Push("cflinuxfs4", testImage(t, nil))
	if _, err := s.Stacks.AddImage(stack.Spec{Name: "mine"}, digest); !errors.Is(err, image.ErrNotPulled) {
		t.Errorf("got %v; want ErrNotPulled", err)
	}
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	st, err := s.Stacks.AddImage(stack.Spec{Name: "mine"}, digest)
	if err != nil || st.Kind != stack.KindImage || st.Compat != "cflinuxfs4" || st.Digest != digest || st.Bytes == 0 {
		t.Fatalf("got %+v, %v", st, err)
	}
	again, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mine", "preloaded:mine", "precached:mine"} {
		inRoot(t, again, name, func(root string) { checkImported(t, name, root) })
	}
	if _, err := again.Mount(t.Context(), root.Request{ID: "a", Stack: "mine"}); err != nil {
		t.Fatal(err)
	}
	if err := again.Stacks.Remove("mine"); err == nil {
		t.Error("a stack was removed under a container")
	}
	if err := again.Unmount(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestLayoutMount holds that a layout is brought in when it is first mounted, and not needed afterwards.
// TestDamagedStack holds that a stack whose image lost a layer is not offered, and can be made again.
func TestDamagedStack(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	ref, digest := reg.Push("cflinuxfs4", testImage(t, nil))
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	st, err := s.Stacks.AddImage(stack.Spec{Name: "mine"}, digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(st.Dirs()[0])); err != nil {
		t.Fatal(err)
	}
	again, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, ok := again.Stacks.Get("mine"); ok {
		t.Error("the damaged stack is offered")
	}
	if _, err := again.Images.Pull(t.Context(), ref.WithDigest(digest), image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Stacks.AddImage(stack.Spec{Name: "mine"}, digest); err != nil {
		t.Fatal(err)
	}
	inRoot(t, again, "mine", func(root string) { checkImported(t, "restored", root) })
}

func TestLayoutMount(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{})
	dir := writeLayout(t, testImage(t, nil))
	inRoot(t, s, "oci:"+dir, func(root string) { checkImported(t, "layout", root) })
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	inRoot(t, s, "oci:"+dir, func(root string) { checkImported(t, "layout that is gone", root) })
	if _, err := s.Mount(t.Context(), root.Request{ID: "x", Stack: "oci:/does/not/exist"}); err == nil {
		t.Error("a layout that is not there was mounted")
	}
}

// TestPullKilled kills a daemon at many moments of pulling and taking away: what its successor finds is whole or not there,
// and it pulls the image from wherever the other was.
func TestPullKilled(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	content := registrytest.Noise(7, 1<<20)
	var layers [][]byte
	for n := range 4 {
		layers = append(layers, registrytest.Tar(t, fmt.Sprintf("f%d=%s", n, content), fmt.Sprintf("dir/g%d=%d", n, n)))
	}
	ref, digest := reg.Push("killed", registrytest.Image(t, v1.Config{}, layers...))
	ref = ref.WithDigest(digest)
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: reg.Certificate().Raw}))
	dir := t.TempDir()
	for round := range 16 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ROOTFS_PULL_DIR="+dir, "ROOTFS_PULL_REF="+ref.String(), "ROOTFS_PULL_CERT="+cert)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 1+2*round && lines.Scan(); n++ {
			if strings.HasPrefix(lines.Text(), "error") {
				t.Error(lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		for lines.Scan() { // until the last writer is gone
		}
		_ = cmd.Wait() // it was killed
		checkSuccessor(t, Config{Dir: dir, IDs: testIDs, Registries: registry.Config{RootCAs: reg.CAs()}}, ref, content)
	}
}

func checkSuccessor(t *testing.T, cfg Config, ref reference.Reference, content string) {
	t.Helper()
	s := newStore(t, cfg)
	check := func(root string) {
		for n := range 4 {
			if string(read(t, filepath.Join(root, fmt.Sprintf("f%d", n)))) != content || string(read(t, filepath.Join(root, fmt.Sprintf("dir/g%d", n)))) != fmt.Sprint(n) {
				t.Errorf("layer %d is not whole", n)
			}
		}
	}
	images, err := s.Images.List()
	if err != nil {
		t.Fatal(err)
	}
	for range images {
		inRoot(t, s, ref.String(), check)
	}
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	inRoot(t, s, ref.String(), check)
	if left, _ := filepath.Glob(s.store.Path("chains", ".new-*")); len(left) > 0 {
		t.Errorf("got %q left", left)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
