package rootfs

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// libcFile makes an ELF file that defines versions of symbols and does nothing else.
func libcFile(machine elf.Machine, versions ...string) []byte {
	order := binary.LittleEndian
	names, defs := []byte{0}, []byte{}
	for n, v := range versions {
		def := make([]byte, 28)
		order.PutUint32(def[12:], 20) // to the name's place
		if n < len(versions)-1 {
			order.PutUint32(def[16:], 28) // to the next
		}
		order.PutUint32(def[20:], uint32(len(names)))
		defs, names = append(defs, def...), append(append(names, v...), 0)
	}
	head, b := make([]byte, 64+2*64), []byte{}
	copy(head, elf.ELFMAG)
	head[elf.EI_CLASS], head[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	order.PutUint16(head[18:], uint16(machine))
	order.PutUint64(head[40:], 64)
	order.PutUint16(head[58:], 64)
	order.PutUint16(head[60:], 2)
	add := func(n int, kind elf.SectionType, content []byte) {
		h := head[64+n*64:]
		order.PutUint32(h[4:], uint32(kind))
		order.PutUint64(h[24:], uint64(len(head)+len(b)))
		order.PutUint64(h[32:], uint64(len(content)))
		b = append(b, content...)
	}
	add(0, elf.SHT_STRTAB, names)
	add(1, elf.SHT_GNU_VERDEF, defs)
	return slices.Concat(head, b)
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text                []byte
		symbols, musl, arch string
	}{
		{libcFile(elf.EM_AARCH64, "libc.so.6", "GLIBC_2.4", "GLIBC_2.36", "GLIBC_2.9", "GLIBC_PRIVATE"), "GLIBC_2.36", "", "arm64"},
		{libcFile(elf.EM_X86_64), "", "", "amd64"},
		{append(libcFile(elf.EM_RISCV), "musl libc (riscv64)\x00x\x001.2.5\x00"...), "", "musl 1.2.5", "riscv64"},
		{append(libcFile(elf.EM_X86_64), "musl libc\x00"...), "", "musl", "amd64"},
		{libcFile(elf.EM_X86_64, "GLIBC_2.4")[:150], "", "", "amd64"},
		{[]byte("#!/bin/sh\n# no program, and a long text\n"), "", "", ""},
		{nil, "", "", ""},
	} {
		r := bytes.NewReader(c.text)
		if s, m, a := symbolVersion(r), muslVersion(r), machineOf(r); s != c.symbols || m != c.musl || a != c.arch {
			t.Errorf("got %q, %q, %q; want %q, %q, %q", s, m, a, c.symbols, c.musl, c.arch)
		}
	}
}

func TestTraitsOfThisMachine(t *testing.T) {
	t.Parallel()
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got := traitsOf(root, "VERSION_CODENAME=jammy\n")
	t.Logf("this machine has %+v", got)
	if _, err := os.Stat("/lib/x86_64-linux-gnu/libc.so.6"); err == nil && (!strings.Contains(got.Kernel, ".") || !strings.HasPrefix(got.Libc, "GLIBC_2.") || got.Arch != runtime.GOARCH) {
		t.Errorf("got %+v; want a kernel, symbols and %s", got, runtime.GOARCH)
	}
	if got.Compat != "cflinuxfs4" || got.runs() != nil {
		t.Errorf("got %+v, %v", got, got.runs())
	}
}

func TestKernelWarning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		have, want string
		older      bool
	}{
		{"6.18.1-generic", "3.2.0", false}, {"3.10.0-1160.el7", "3.2.0", false}, {"3.2", "3.2.0", false}, {"2.6.32", "3.2.0", true}, {"5.4.0", "5.10.0", true},
		{"GLIBC_2.4", "GLIBC_2.36", true}, {"GLIBC_2.36", "GLIBC_2.9", false}, {"", "GLIBC_2.2.5", true}, {"GLIBC_2.2.5", "GLIBC_2.3", true},
	} {
		if got := olderVersion(c.have, c.want); got != c.older {
			t.Errorf("%s, %s: got %t; want %t", c.have, c.want, got, c.older)
		}
	}
	if text := KernelWarning("99.0.0"); !strings.Contains(text, "99.0.0") {
		t.Errorf("got %q; want a warning", text)
	}
	if text := KernelWarning("2.6.0") + KernelWarning(""); text != "" {
		t.Errorf("got %q; want none", text)
	}
}

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
	img := platform(t, testImage(t, nil), strings.TrimPrefix(name, "linux/"), v1.Config{})
	for kind, path := range map[string]string{
		"tar":            writeFile(t, "root.tar", tarText(t, "bin/sh="+string(libcFile(machine)))),
		"docker-archive": dockerArchive(t, img, "x/y:1"),
	} {
		_, err := s.Import(t.Context(), "foreign", "", path, nil)
		if err == nil || !strings.Contains(err.Error(), "for "+name+"; this machine is linux/"+runtime.GOARCH) {
			t.Errorf("%s: got %v; want both machines named", kind, err)
		}
		if _, ok := s.Stack("foreign"); ok {
			t.Errorf("%s: the stack is there", kind)
		}
	}
}

// TestTraits holds that what an image or a tree tells of itself is read and kept.
func TestTraits(t *testing.T) {
	needRoot(t)
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	lib := cLibraries[runtime.GOARCH][0]
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config()})
	tree := tarText(t, lib+"="+string(libcFile(machine, "GLIBC_2.17")))
	ref, digest := reg.push("a", imageOf(t, v1.Config{}, tree))
	img, err := s.Pull(t.Context(), ref, PullOptions{})
	if err != nil || img.Libc != "GLIBC_2.17" || img.Arch != runtime.GOARCH {
		t.Errorf("got %+v, %v", img, err)
	}
	if _, err := s.AddImage(NewStack{Name: "pulled"}, digest); err != nil {
		t.Error(err)
	}
	if _, err := s.Import(t.Context(), "imported", "", writeFile(t, "root.tar", tree), nil); err != nil {
		t.Error(err)
	}
	again, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, name := range []string{"pulled", "imported"} {
		if st, _ := again.Stack(name); st.Libc != "GLIBC_2.17" || st.Arch != runtime.GOARCH {
			t.Errorf("%s: got %+v", name, st)
		}
	}
	other, name := foreign()
	ref, _ = reg.push("foreign", imageOf(t, v1.Config{}, tarText(t, "bin/sh="+string(libcFile(other)))))
	if _, err := s.Pull(t.Context(), ref, PullOptions{}); err == nil || !strings.Contains(err.Error(), "its programs are for "+name) {
		t.Errorf("got %v; want the machine named", err)
	}
}
