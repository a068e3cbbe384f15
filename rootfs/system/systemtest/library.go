// Package systemtest makes files of systems for tests.
package systemtest

import (
	"debug/elf"
	"encoding/binary"
	"slices"
)

// Library makes an ELF file that defines versions of symbols and does nothing else.
func Library(machine elf.Machine, versions ...string) []byte {
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
