package system

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

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

// Kernel is the release of the machine's kernel, such as 6.1.0-18-amd64; "" if it cannot be read.
func Kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(release))
}

// KernelChanged reports whether two releases of Linux have different major versions. Unknown ones, "", have none.
func KernelChanged(then, now string) bool {
	major := func(release string) string { first, _, _ := strings.Cut(release, "."); return first }
	return then != "" && now != "" && major(then) != major(now)
}

// KernelWarning says what to expect of a system whose C library wants kernel, such as 3.2.0, or a newer one; "" when there is
// nothing to say.
func KernelWarning(kernel string) string {
	release := Kernel()
	if release == "" || kernel == "" || !olderVersion(release, kernel) {
		return ""
	}
	return fmt.Sprintf("its programs want Linux %s or newer, and this machine has %s: they will say \"kernel too old\"", kernel, release)
}

// olderVersion compares the numbers that two versions begin with, of kernels or of symbols.
func olderVersion(have, want string) bool {
	var h, w [3]int // what is missing is 0
	_, _ = fmt.Sscanf(strings.TrimPrefix(have, symbolsOf), "%d.%d.%d", &h[0], &h[1], &h[2])
	_, _ = fmt.Sscanf(strings.TrimPrefix(want, symbolsOf), "%d.%d.%d", &w[0], &w[1], &w[2])
	return slices.Compare(h[:], w[:]) < 0
}
