package debian

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// finishLibraries writes /etc/ld.so.cache as ldconfig does (glibc's format 1.1),
// by which the loader finds libraries outside of its own directories and
// programs such as Python's ctypes find any.
func finishLibraries(t *tree, _ []*installed) error {
	if t.lookup("usr/sbin/ldconfig") == nil {
		return nil
	}
	seen := make(map[string]bool)
	var all []library
	for _, dir := range libraryDirs(t) {
		for _, l := range readLibraries(t, dir) {
			if !seen[l.name] {
				seen[l.name] = true
				all = append(all, l)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return t.put("etc/ld.so.cache", 0o644, encodeLibraries(all))
}

// A library is one entry of the cache.
type library struct {
	name  string // by which it is asked for
	path  string // with leading slash
	flags uint32 // glibc's mark of the ABI
}

// libraryDirs follows ld.so.conf, then the loader's own directories.
func libraryDirs(t *tree) []string {
	var dirs []string
	for _, name := range append([]string{"etc/ld.so.conf"}, t.glob("etc/ld.so.conf.d", "*.conf")...) {
		content, err := t.read(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			line, _, _ = strings.Cut(line, "#")
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
				dirs = append(dirs, path.Clean(line))
			}
		}
	}
	return append(dirs, "/lib", "/usr/lib")
}

// readLibraries lists the libraries of one directory, each by its soname, and by
// the plain name that the linker uses where there is a link of it.
func readLibraries(t *tree, dir string) []library {
	real, err := t.walk(dir, true)
	if err != nil {
		return nil
	}
	var all []library
	for _, file := range t.glob(real, "*.so*") {
		name := path.Base(file)
		soname, flags := readSoname(t, file)
		if flags == 0 || !strings.HasPrefix(name, "lib") && !strings.HasPrefix(name, "ld-") {
			continue
		}
		if n := t.nodes[file]; n.kind == fs.ModeSymlink && strings.HasSuffix(name, ".so") || soname == "" {
			soname = name
		}
		if t.lookup(real+"/"+soname) != nil {
			all = append(all, library{soname, dir + "/" + soname, flags})
		}
	}
	slices.SortFunc(all, func(a, b library) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b library) bool { return a.name == b.name })
}

// readSoname returns flags 0 if the file is not a library of a known kind.
func readSoname(t *tree, file string) (soname string, flags uint32) {
	full, err := t.walk(file, true)
	if n := t.nodes[full]; err != nil || n == nil || n.kind != 0 {
		return "", 0
	}
	f, err := t.root.Open(full)
	if err != nil {
		return "", 0
	}
	defer f.Close()
	e, err := elf.NewFile(f)
	if err != nil || e.Type != elf.ET_DYN || e.Class != elf.ELFCLASS64 {
		return "", 0
	}
	// FLAG_ELF_LIBC6 with the machine's mark, in glibc's ldconfig.h.
	switch e.Machine {
	case elf.EM_X86_64:
		flags = 0x0303
	case elf.EM_AARCH64:
		flags = 0x0a03
	}
	if names, err := e.DynString(elf.DT_SONAME); err == nil && len(names) == 1 && !strings.Contains(names[0], "/") {
		soname = names[0]
	}
	return soname, flags
}

// encodeLibraries writes the cache: header, entries in falling order, for the
// loader searches by halves, and strings, which the entries point to.
func encodeLibraries(all []library) []byte {
	const headerSize, entrySize = 48, 24
	slices.SortStableFunc(all, func(a, b library) int { return compareLibraries(b.name, a.name) })
	var text []byte
	start := uint32(headerSize + entrySize*len(all))
	add := func(s string) uint32 {
		at := start + uint32(len(text))
		text = append(append(text, s...), 0)
		return at
	}
	var entries []byte
	le := binary.LittleEndian
	for _, l := range all {
		entries = le.AppendUint32(entries, l.flags)
		entries = le.AppendUint32(entries, add(l.name))
		entries = le.AppendUint32(entries, add(l.path))
		entries = append(entries, make([]byte, 12)...) // no kernel version, no hardware capability
	}
	out := []byte("glibc-ld.so.cache1.1")
	out = le.AppendUint32(out, uint32(len(all)))
	out = le.AppendUint32(out, uint32(len(text)))
	out = append(out, 2) // little endian
	out = append(out, make([]byte, headerSize-len(out))...)
	return slices.Concat(out, entries, text)
}

// compareLibraries is the loader's order: digits as numbers, and before nothing else.
func compareLibraries(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		switch {
		case da > 0 && db > 0:
			if c := compareDigits(a[:da], b[:db]); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
		case da > 0:
			return 1
		case db > 0:
			return -1
		case a[0] != b[0]:
			return cmp.Compare(int8(a[0]), int8(b[0])) // plain char is signed there
		default:
			a, b = a[1:], b[1:]
		}
	}
	return cmp.Compare(len(a), len(b))
}
