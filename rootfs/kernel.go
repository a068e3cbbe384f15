package rootfs

import (
	"debug/elf"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// cLibraries are where images keep what says which kernels their programs run on. musl says nothing.
var cLibraries = []string{
	"lib/x86_64-linux-gnu/libc.so.6", "lib/aarch64-linux-gnu/libc.so.6", "lib64/libc.so.6", "usr/lib64/libc.so.6",
	"usr/lib/libc.so.6", "lib/libc.so.6",
}

// kernelOf reads the note of the C library in an image's tree that names the oldest Linux it runs on; "" without one.
func kernelOf(root *os.File) string {
	for _, name := range cLibraries {
		f, err := openFollowing(root, path.Clean(name))
		if err != nil {
			continue
		}
		kernel := abiNote(f)
		f.Close()
		if kernel != "" {
			return kernel
		}
	}
	return ""
}

const (
	maxNote    = 64 << 10
	noteABITag = 1
)

// abiNote finds the note NT_GNU_ABI_TAG in an ELF file: its words are the system, 0 for Linux, and a version's three parts.
func abiNote(f *os.File) string {
	e, err := elf.NewFile(f)
	if err != nil {
		return ""
	}
	for _, p := range e.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > maxNote {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			continue
		}
		for order := e.ByteOrder; len(b) >= 12; {
			nameSize, descSize, kind := int(order.Uint32(b)), int(order.Uint32(b[4:])), order.Uint32(b[8:])
			b = b[12:]
			name, desc := align4(nameSize), align4(descSize)
			if nameSize < 0 || descSize < 0 || name < 0 || desc < 0 || name+desc < 0 || name+desc > len(b) {
				break
			}
			d := b[name:]
			if kind == noteABITag && string(b[:nameSize]) == "GNU\x00" && descSize == 16 && order.Uint32(d) == 0 {
				return fmt.Sprintf("%d.%d.%d", order.Uint32(d[4:]), order.Uint32(d[8:]), order.Uint32(d[12:]))
			}
			b = b[name+desc:]
		}
	}
	return ""
}

func align4(n int) int { return (n + 3) &^ 3 }

// KernelWarning says what to expect of an image whose C library wants a newer kernel than this machine's; "" when there is
// nothing to say.
func KernelWarning(i Image) string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil || i.Kernel == "" || !olderKernel(string(release), i.Kernel) {
		return ""
	}
	return fmt.Sprintf("its programs want Linux %s or newer, and this machine has %s: they will say \"kernel too old\"", i.Kernel, strings.TrimSpace(string(release)))
}

// olderKernel compares the numbers that two versions begin with.
func olderKernel(have, want string) bool {
	var h, w [3]int
	_, _ = fmt.Sscanf(have, "%d.%d.%d", &h[0], &h[1], &h[2]) // what is missing is 0
	_, _ = fmt.Sscanf(want, "%d.%d.%d", &w[0], &w[1], &w[2])
	return slices.Compare(h[:], w[:]) < 0
}
