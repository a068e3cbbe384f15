package system

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"cupola/rootfs/tree"
	"cupola/runtime/pattern"
)

// programs are where trees keep what tells the machine they are for. Static programs tell nothing else.
var programs = []string{"bin/sh", "bin/busybox", "bin/ls", "sbin/ldconfig"}

// cLibraries are where trees keep their C library, this machine's first: a tree may have others for cross-compilers.
var cLibraries = map[string][]string{
	"amd64": {"lib/x86_64-linux-gnu/libc.so.6", "lib64/libc.so.6", "usr/lib64/libc.so.6", "lib/ld-musl-x86_64.so.1"},
	"arm64": {"lib/aarch64-linux-gnu/libc.so.6", "lib64/libc.so.6", "usr/lib64/libc.so.6", "lib/ld-musl-aarch64.so.1"},
	"":      {"usr/lib/libc.so.6", "lib/libc.so.6"},
}

// traitsOf reads what a tree tells about itself. What it does not tell stays empty.
func traitsOf(root *os.File, release string) tree.Traits {
	t := tree.Traits{Compat: CompatOfRelease(release)}
	for _, arch := range []string{runtime.GOARCH, "", "amd64", "arm64"} {
		for _, name := range cLibraries[arch] {
			if f, err := tree.OpenFollowing(root, name); err == nil {
				readLibrary(&t, f, strings.Contains(name, "musl"))
				f.Close()
			}
			if t.Arch != "" {
				return t
			}
		}
	}
	for _, name := range programs {
		if f, err := tree.OpenFollowing(root, name); err == nil {
			t.Arch = cmp.Or(t.Arch, machineOf(f))
			f.Close()
		}
	}
	return t
}

func readLibrary(t *tree.Traits, f io.ReaderAt, musl bool) {
	t.Arch, t.Kernel = machineOf(f), abiNote(f)
	if t.Libc = symbolVersion(f); musl {
		t.Libc = muslVersion(f)
	}
}

// checkArch refuses a system for another machine. A 64-bit machine may run the programs of its 32-bit sibling.
func checkArch(t tree.Traits) error {
	if t.Arch == "" || t.Arch == runtime.GOARCH || t.Arch == "386" && runtime.GOARCH == "amd64" {
		return nil
	}
	return fmt.Errorf("its programs are for linux/%s; this machine is linux/%s", t.Arch, runtime.GOARCH)
}

var machines = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm", elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x",
	elf.EM_RISCV: "riscv64", elf.EM_LOONGARCH: "loong64", elf.EM_MIPS: "mips",
}

// machineOf returns the machine that an ELF file is for, "" for other files.
func machineOf(f io.ReaderAt) string {
	var h [20]byte
	if _, err := f.ReadAt(h[:], 0); err != nil || string(h[:4]) != elf.ELFMAG {
		return ""
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(h[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	machine := elf.Machine(order.Uint16(h[18:]))
	return cmp.Or(machines[machine], strings.ToLower(strings.TrimPrefix(machine.String(), "EM_")))
}

const maxMusl = 4 << 20

// muslText is how musl's one file, which is loader and library, has its version: nowhere but in the text that it prints.
var muslText = pattern.Lazy(`\x00([0-9]\.[0-9]{1,3}\.[0-9]{1,3})\x00`)

func muslVersion(f io.ReaderAt) string {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxMusl))
	if err != nil || !bytes.Contains(text, []byte("musl libc")) {
		return ""
	}
	if m := muslText().FindSubmatch(text); m != nil {
		return "musl " + string(m[1])
	}
	return "musl"
}

// CompatOfRelease returns which of CF's stacks shares its userland with the system of an os-release file; "" for none.
func CompatOfRelease(release string) string {
	for line := range strings.Lines(release) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key != "VERSION_CODENAME" {
			continue
		}
		switch strings.Trim(value, `"'`) {
		case "bionic":
			return "cflinuxfs3"
		case "jammy":
			return "cflinuxfs4"
		case "noble":
			return "cflinuxfs5"
		}
	}
	return ""
}

// compatLabel is an image's label with the name of the CF stack that it is like.
const compatLabel = "org.cloudfoundry.stack.compat"

// CompatOf returns which of CF's stacks an image is like by its labels and names, "" for none.
func CompatOf(labels map[string]string, names []string) string {
	if c := labels[compatLabel]; c != "" {
		return c
	}
	for _, name := range names {
		if c := CompatOfName(name[strings.LastIndex(name, "/")+1:]); c != "" {
			return c
		}
	}
	return ""
}

var cflinuxfs = pattern.Lazy(`^cflinuxfs\d+`)

// CompatOfName reads CF's own stacks off a file's or repository's name.
func CompatOfName(base string) string { return cflinuxfs().FindString(base) }
