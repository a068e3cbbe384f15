package rootfs

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
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
	maxProgs   = 64
	noteABITag = 1
)

// abiNote finds the note NT_GNU_ABI_TAG in a 64-bit ELF file. It reads what is needed of the file and no more, since the
// file is anybody's.
func abiNote(f io.ReaderAt) string {
	var h [64]byte
	if _, err := f.ReadAt(h[:], 0); err != nil || string(h[:4]) != elf.ELFMAG || elf.Class(h[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(h[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return ""
	}
	order := binary.LittleEndian
	size := int64(order.Uint16(h[54:]))
	for n := range int64(min(order.Uint16(h[56:]), maxProgs)) {
		var prog [56]byte
		at, ok := offset(order.Uint64(h[32:]), uint64(n*size))
		if _, err := f.ReadAt(prog[:], at); !ok || err != nil {
			return ""
		}
		at, ok = offset(order.Uint64(prog[8:]), 0)
		length := order.Uint64(prog[32:])
		if elf.ProgType(order.Uint32(prog[:])) != elf.PT_NOTE || length > maxNote || !ok {
			continue
		}
		notes := make([]byte, length)
		if _, err := f.ReadAt(notes, at); err != nil {
			continue
		}
		if kernel := kernelNote(notes, order); kernel != "" {
			return kernel
		}
	}
	return ""
}

func offset(a, b uint64) (int64, bool) { return int64(a + b), a < 1<<48 }

// kernelNote finds the ABI tag among notes: its words are the system, 0 for Linux, and a version's three parts.
func kernelNote(b []byte, order binary.ByteOrder) string {
	for len(b) >= 12 {
		nameSize, descSize, kind := int(order.Uint32(b)), int(order.Uint32(b[4:])), order.Uint32(b[8:])
		b = b[12:]
		if nameSize > maxNote || descSize > maxNote || align4(nameSize)+align4(descSize) > len(b) {
			return ""
		}
		d := b[align4(nameSize):]
		if kind == noteABITag && string(b[:nameSize]) == "GNU\x00" && descSize == 16 && order.Uint32(d) == 0 {
			return fmt.Sprintf("%d.%d.%d", order.Uint32(d[4:]), order.Uint32(d[8:]), order.Uint32(d[12:]))
		}
		b = d[align4(descSize):]
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
