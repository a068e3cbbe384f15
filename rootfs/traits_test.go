package rootfs

import (
	"debug/elf"
	"runtime"
	"strings"
	"testing"

	"cupola/rootfs/image"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/rootfs/registry"
	"cupola/rootfs/registry/registrytest"
	"cupola/rootfs/stack"
	"cupola/rootfs/system/systemtest"
)

// foreign is a machine that this one is not.
func foreign() (elf.Machine, string) {
	if runtime.GOARCH == "arm64" {
		return elf.EM_X86_64, "linux/amd64"
	}
	return elf.EM_AARCH64, "linux/arm64"
}

// TestForeignImport holds that a system for another machine is refused, however it comes, and that both are named.
func TestForeignImport(t *testing.T) {
	t.Parallel()
	machine, name := foreign()
	s := newStore(t, Config{})
	img := registrytest.Platform(t, testImage(t, nil), strings.TrimPrefix(name, "linux/"), v1.Config{})
	for kind, path := range map[string]string{
		"tar":            writeFile(t, "root.tar", registrytest.Tar(t, "bin/sh="+string(systemtest.Library(machine)))),
		"docker-archive": dockerArchive(t, img, "x/y:1"),
	} {
		_, err := s.Stacks.Import(t.Context(), "foreign", "", path, nil)
		if err == nil || !strings.Contains(err.Error(), "for "+name+"; this machine is linux/"+runtime.GOARCH) {
			t.Errorf("%s: got %v; want both machines named", kind, err)
		}
		if _, ok := s.Stacks.Get("foreign"); ok {
			t.Errorf("%s: the stack is there", kind)
		}
	}
}

// TestTraits holds that what an image or a tree tells of itself is read and kept.
func TestTraits(t *testing.T) {
	needRoot(t)
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	lib := map[string]string{"amd64": "lib/x86_64-linux-gnu/libc.so.6", "arm64": "lib/aarch64-linux-gnu/libc.so.6"}[runtime.GOARCH]
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	tree := registrytest.Tar(t, lib+"="+string(systemtest.Library(machine, "GLIBC_2.17")))
	ref, digest := reg.Push("a", registrytest.Image(t, v1.Config{}, tree))
	img, err := s.Images.Pull(t.Context(), ref, image.PullOptions{})
	if err != nil || img.Libc != "GLIBC_2.17" || img.Arch != runtime.GOARCH {
		t.Errorf("got %+v, %v", img, err)
	}
	if _, err := s.Stacks.AddImage(stack.Spec{Name: "pulled"}, digest); err != nil {
		t.Error(err)
	}
	if _, err := s.Stacks.Import(t.Context(), "imported", "", writeFile(t, "root.tar", tree), nil); err != nil {
		t.Error(err)
	}
	again, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, name := range []string{"pulled", "imported"} {
		if st, _ := again.Stacks.Get(name); st.Libc != "GLIBC_2.17" || st.Arch != runtime.GOARCH {
			t.Errorf("%s: got %+v", name, st)
		}
	}
	other, name := foreign()
	ref, _ = reg.Push("foreign", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "bin/sh="+string(systemtest.Library(other)))))
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err == nil || !strings.Contains(err.Error(), "its programs are for "+name) {
		t.Errorf("got %v; want the machine named", err)
	}
}
