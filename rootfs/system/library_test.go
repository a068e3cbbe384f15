package system

import (
	"bytes"
	"debug/elf"
	"os"
	"runtime"
	"strings"
	"testing"

	"cupola/rootfs/system/systemtest"
)

func TestLibrary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text                []byte
		symbols, musl, arch string
	}{
		{systemtest.Library(elf.EM_AARCH64, "libc.so.6", "GLIBC_2.4", "GLIBC_2.36", "GLIBC_2.9", "GLIBC_PRIVATE"), "GLIBC_2.36", "", "arm64"},
		{systemtest.Library(elf.EM_X86_64), "", "", "amd64"},
		{append(systemtest.Library(elf.EM_RISCV), "musl libc (riscv64)\x00x\x001.2.5\x00"...), "", "musl 1.2.5", "riscv64"},
		{append(systemtest.Library(elf.EM_X86_64), "musl libc\x00"...), "", "musl", "amd64"},
		{systemtest.Library(elf.EM_X86_64, "GLIBC_2.4")[:150], "", "", "amd64"},
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
	if got.Compat != "cflinuxfs4" || checkArch(got) != nil {
		t.Errorf("got %+v, %v", got, checkArch(got))
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

// FuzzLibrary reads libraries that are anything.
func FuzzLibrary(f *testing.F) {
	for _, name := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/bin/true"} {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text[:min(len(text), 4096)])
		}
	}
	f.Add(systemtest.Library(elf.EM_AARCH64, "GLIBC_2.17", "GLIBC_2.4"))
	f.Add([]byte("\x7fELF musl libc\x001.2.5\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bytes.NewReader(text)
		abiNote(r)
		machineOf(r)
		if v := muslVersion(r); v != "" && !strings.HasPrefix(v, "musl") {
			t.Errorf("got %q of musl", v)
		}
		if v := symbolVersion(r); v != "" && !strings.HasPrefix(v, symbolsOf) {
			t.Errorf("got the version %q", v)
		}
	})
}

func TestKernelChanged(t *testing.T) {
	for _, c := range []struct {
		then, now string
		want      bool
	}{
		{"5.15.0-91-generic", "6.8.0-31-generic", true}, {"6.8.0", "5.15.0", true}, {"6.1.0-18-amd64", "6.12.9", false}, {"6.1.0", "6.1.0", false},
		{"", "6.1.0", false}, {"6.1.0", "", false}, {"1.2", "10.2", true},
	} {
		if got := KernelChanged(c.then, c.now); got != c.want {
			t.Errorf("%s, then %s: got %v; want %v", c.then, c.now, got, c.want)
		}
	}
	if release := Kernel(); !strings.Contains(release, ".") || KernelChanged(release, release) {
		t.Errorf("got the release %q", release)
	}
}
