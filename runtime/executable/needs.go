package executable

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

// needs are what a file needs to be executed.
type needs struct {
	System      string // "macOS", "Windows"; "" for Linux, and scripts
	Processor   string // in Go's words; "" for a script
	Interpreter string // of a script, or the loader of a program; "": none
	Script      bool
}

// maxInterpreter is the kernel's bound for the first line of a script.
const maxInterpreter = 256

// read reads what a file needs. The file may be anything.
func read(file io.ReaderAt) (needs, error) {
	head := make([]byte, maxInterpreter)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return needs{}, err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		return readELF(file)
	case bytes.HasPrefix(head, []byte("#!")):
		line, _, _ := strings.Cut(string(head[2:]), "\n")
		return needs{Script: true, Interpreter: interpreter(line)}, nil
	case bytes.HasPrefix(head, []byte("MZ")):
		return needs{System: "Windows"}, nil
	case bytes.HasPrefix(head, []byte("\xcf\xfa\xed\xfe")):
		return needs{System: "macOS"}, nil
	}
	return needs{}, nil
}

// interpreter is that of a script's first line, with a CR that follows it.
func interpreter(line string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
	name, _, _ = strings.Cut(name, "\t")
	if strings.HasSuffix(line, "\r") && !strings.HasSuffix(name, "\r") {
		name += "\r" // of its last argument
	}
	return name
}

// processors are Go's words for those that Linux runs on.
var processors = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64",
	elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x", elf.EM_LOONGARCH: "loong64", elf.EM_MIPS: "mips",
}

// What is read of a program: package elf would read whole sections, of whatever size.
const (
	maxLoader   = 4096 // bytes of its loader's name
	maxSegments = 128
)

func readELF(file io.ReaderAt) (needs, error) {
	var ident [elf.EI_NIDENT]byte
	if _, err := file.ReadAt(ident[:], 0); err != nil {
		return needs{}, err
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(ident[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	if elf.Class(ident[elf.EI_CLASS]) == elf.ELFCLASS32 {
		return readHeaders(file, order, func(h elf.Header32) header { return header{h.Machine, int64(h.Phoff), h.Phnum} },
			func(p elf.Prog32) segment { return segment{p.Type, int64(p.Off), int64(p.Filesz)} })
	}
	return readHeaders(file, order, func(h elf.Header64) header { return header{h.Machine, int64(h.Phoff), h.Phnum} },
		func(p elf.Prog64) segment { return segment{p.Type, int64(p.Off), int64(p.Filesz)} })
}

// header and segment are what counts of a program's, of either class.
type (
	header struct {
		machine  uint16
		segments int64
		count    uint16
	}
	segment struct {
		kind         uint32
		offset, size int64
	}
)

func readHeaders[H, P any](file io.ReaderAt, order binary.ByteOrder, headerOf func(H) header, segmentOf func(P) segment) (needs, error) {
	var whole H
	if err := readAt(file, 0, order, &whole); err != nil {
		return needs{}, err
	}
	h := headerOf(whole)
	n := needs{Processor: processors[elf.Machine(h.machine)]}
	if n.Processor == "" {
		n.Processor = elf.Machine(h.machine).String()
	}
	for i := range min(int64(h.count), maxSegments) {
		var one P
		if err := readAt(file, h.segments+i*int64(binary.Size(one)), order, &one); err != nil {
			return n, err
		}
		if p := segmentOf(one); elf.ProgType(p.kind) == elf.PT_INTERP {
			name, err := io.ReadAll(io.NewSectionReader(file, p.offset, min(max(p.size, 0), maxLoader)))
			n.Interpreter = strings.TrimRight(string(name), "\x00")
			return n, err
		}
	}
	return n, nil
}

func readAt(file io.ReaderAt, offset int64, order binary.ByteOrder, to any) error {
	return binary.Read(io.NewSectionReader(file, max(offset, 0), int64(binary.Size(to))), order, to)
}
