package system

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"strings"
)

const (
	maxSections = 256
	maxVersions = 512
	maxSymbols  = 1 << 20 // bytes of a table
	symbolsOf   = "GLIBC_"
)

// section is what is needed of a section's header in a 64-bit ELF file.
type section struct {
	kind uint32
	link uint32
	off  int64
	size int64
}

// symbolVersion finds the newest version among those that a library defines symbols of, such as GLIBC_2.36: programs that
// were linked against a newer one do not start. Like abiNote it takes nothing in the file for granted.
func symbolVersion(f io.ReaderAt) string {
	sections := sectionsOf(f)
	for _, s := range sections {
		if elf.SectionType(s.kind) != elf.SHT_GNU_VERDEF || int(s.link) >= len(sections) {
			continue
		}
		newest := ""
		names := contentOf(f, sections[s.link])
		for _, at := range versionNames(contentOf(f, s)) {
			if name := textAt(names, at); strings.HasPrefix(name, symbolsOf+"2.") && olderVersion(newest, name) {
				newest = name
			}
		}
		return newest
	}
	return ""
}

func sectionsOf(f io.ReaderAt) (all []section) {
	var h [64]byte
	if _, err := f.ReadAt(h[:], 0); err != nil || string(h[:4]) != elf.ELFMAG || elf.Class(h[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(h[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil
	}
	order := binary.LittleEndian
	size, count := uint64(order.Uint16(h[58:])), uint64(order.Uint16(h[60:]))
	for n := range min(count, maxSections) {
		var b [64]byte
		at, ok := offset(order.Uint64(h[40:]), n*size)
		if _, err := f.ReadAt(b[:], at); !ok || err != nil {
			return nil
		}
		off, ok := offset(order.Uint64(b[24:]), 0)
		length := order.Uint64(b[32:])
		if !ok || length > maxSymbols {
			length = 0 // of no interest
		}
		all = append(all, section{kind: order.Uint32(b[4:]), link: order.Uint32(b[40:]), off: off, size: int64(length)})
	}
	return all
}

func contentOf(f io.ReaderAt, s section) []byte {
	b := make([]byte, s.size)
	if _, err := f.ReadAt(b, s.off); err != nil {
		return nil
	}
	return b
}

// versionNames are where the names of the versions stand that a section defines: each definition leads to the next, and to
// its own name.
func versionNames(b []byte) (at []uint32) {
	order := binary.LittleEndian
	for range maxVersions {
		if len(b) < 20 {
			break
		}
		if aux := uint64(order.Uint32(b[12:])); aux+8 <= uint64(len(b)) {
			at = append(at, order.Uint32(b[aux:]))
		}
		next := uint64(order.Uint32(b[16:]))
		if next == 0 || next > uint64(len(b)) {
			break
		}
		b = b[next:]
	}
	return at
}

func textAt(b []byte, at uint32) string {
	if uint64(at) >= uint64(len(b)) {
		return ""
	}
	text, _, _ := bytes.Cut(b[at:], []byte{0})
	return string(text)
}
