package push

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"
	"testing"

	"cupola/test/e2e"
)

// archiveCase is an upload that must be refused, with words that match want.
type archiveCase struct {
	name  string
	want  string
	write func(io.Writer) error
}

// entry is one of a hostile archive.
type entry struct {
	name, content string
	mode          fs.FileMode
}

// zipOf writes the entries as they are.
func zipOf(entries ...entry) func(io.Writer) error {
	return func(to io.Writer) error {
		w := zip.NewWriter(to)
		for _, e := range entries {
			h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
			h.SetMode(e.mode)
			f, err := w.CreateHeader(h)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(f, e.content); err != nil {
				return err
			}
		}
		return w.Close()
	}
}

const (
	symlink = fs.ModeSymlink | 0o777
	device  = fs.ModeDevice | fs.ModeCharDevice | 0o666
)

// large is content of a size that the daemon would keep as a separate file.
var large = string(bytes.Repeat([]byte("0123456789abcdef"), 8<<10))

// hostileZips are what no endpoint takes that takes zips. All have a good entry
// first: what is kept of it must go as well.
func hostileZips() []archiveCase {
	of := func(entries ...entry) func(io.Writer) error {
		return zipOf(append([]entry{{"bin/compile", large, 0o755}}, entries...)...)
	}
	return []archiveCase{
		{"absolute path", `/etc/passwd: is an absolute path`, of(entry{"/etc/passwd", "x", 0o644})},
		{"dots", `\.\./\.\./etc/passwd: leads out of`, of(entry{"../../etc/passwd", "x", 0o644})},
		{"dots within", `a/\.\./\.\./b: leads out of`, of(entry{"a/../../b", "x", 0o644})},
		{"backslashes", `is not a valid path`, of(entry{`..\..\b`, "x", 0o644})},
		{"a zero byte", `is not a valid path`, of(entry{"a\x00b", "x", 0o644})},
		{"long name", `has a path that is too long`, of(entry{string(bytes.Repeat([]byte("a/"), 4000)), "", 0o644})},
		{"absolute link", `l: links to ./etc/passwd., which is outside`, of(entry{"l", "/etc/passwd", symlink})},
		{"link out", `a/l: links to .+, which is outside`, of(entry{"a/l", "../../x", symlink})},
		{"links out together", `links to .+, which is outside`, of(entry{"a/b/c", "../..", symlink}, entry{"l", "a/b/c/..", symlink})},
		{"file through a link", `l/f: lies below l, which is not a directory`, of(entry{"l", "bin", symlink}, entry{"l/f", "x", 0o644})},
		{"long link", `l: is a symbolic link that is too long`, of(entry{"l", large, symlink})},
		{"device", `null: is neither a file`, of(entry{"null", "", device})},
		{"fifo", `pipe: is neither a file`, of(entry{"pipe", "", fs.ModeNamedPipe | 0o666})},
		{"twice", `bin/compile: is there twice`, of(entry{"bin/compile", "y", 0o644})},
		{"file and directory", `bin/compile/x: lies below bin/compile, which is not a directory`, of(entry{"bin/compile/x", "y", 0o644})},
		{"bomb", `unpacks to more than`, zipBomb},
		{"lying bomb", `has not the 10 bytes that it says`, lyingBomb},
		{"wrong size", `lie: has not the \d+ bytes that it says`, lyingSize},
		{"wrong checksum", `lie: has not the checksum that it says`, wrongChecksum},
		{"a million entries", `has more than 300000 entries`, millionZip},
		{"a million entries, denied", `has more than 300000 entries`, deniedMillion},
		{"cut short", `is not a valid zip file`, cutShort(of(entry{"a", large, 0o644}))},
	}
}

// zeros is a deflated quarter of a gigabyte of zeros, made once.
var zeros = sync.OnceValues(func() (packed []byte, sum uint32) {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed)
	h := crc32.NewIEEE()
	block := make([]byte, 1<<20)
	for range zerosSize / len(block) {
		_, _ = w.Write(block)
		_, _ = h.Write(block)
	}
	_ = w.Close()
	return b.Bytes(), h.Sum32()
})

const zerosSize = 256 << 20

// rawEntries writes deflated zeros under n names, saying that each has the
// size; the bytes of all are the same.
func rawEntries(to io.Writer, n int, size uint64) error {
	packed, sum := zeros()
	w := zip.NewWriter(to)
	for i := range n {
		h := &zip.FileHeader{Name: fmt.Sprintf("zeros-%d", i), Method: zip.Deflate, CRC32: sum, CompressedSize64: uint64(len(packed)), UncompressedSize64: size}
		f, err := w.CreateRaw(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(packed); err != nil {
			return err
		}
	}
	return w.Close()
}

// zipBomb says truly that it unpacks to 16 GiB.
func zipBomb(w io.Writer) error { return rawEntries(w, 64, zerosSize) }

// lyingBomb says that each of its quarter gigabytes has ten bytes.
func lyingBomb(w io.Writer) error { return rawEntries(w, 8, 10) }

// rawZip writes a good entry, and one with another header than is true.
func rawZip(w io.Writer, lie func(*zip.FileHeader)) error {
	z := zip.NewWriter(w)
	for _, name := range []string{"bin/compile", "lie"} {
		h := &zip.FileHeader{Name: name, Method: zip.Store, CRC32: crc32.ChecksumIEEE([]byte(large)), CompressedSize64: uint64(len(large)), UncompressedSize64: uint64(len(large))}
		if name == "lie" {
			lie(h)
		}
		f, err := z.CreateRaw(h)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(f, large); err != nil {
			return err
		}
	}
	return z.Close()
}

func lyingSize(w io.Writer) error {
	return rawZip(w, func(h *zip.FileHeader) { h.UncompressedSize64 += 1000 })
}

func wrongChecksum(w io.Writer) error {
	return rawZip(w, func(h *zip.FileHeader) { h.CRC32++ })
}

// millionZip has 10⁶ entries, as few bytes as each may have.
func millionZip(w io.Writer) error {
	z := zip.NewWriter(w)
	for i := range 1_000_000 {
		if _, err := z.CreateRaw(&zip.FileHeader{Name: fmt.Sprintf("%x", i)}); err != nil {
			return err
		}
	}
	return z.Close()
}

// deniedMillion is the same, but its last record says that there are as many
// entries as the count's low sixteen bits, and where they begin.
func deniedMillion(w io.Writer) error {
	var b bytes.Buffer
	if err := millionZip(&b); err != nil {
		return err
	}
	text := b.Bytes()
	end64 := bytes.LastIndex(text, []byte("PK\x06\x06"))
	size := binary.LittleEndian.Uint64(text[end64+40:])
	offset := binary.LittleEndian.Uint64(text[end64+48:])
	record := binary.LittleEndian.AppendUint32(nil, 0x06054b50)
	record = append(record, 0, 0, 0, 0)
	record = binary.LittleEndian.AppendUint16(record, 1_000_000&0xffff)
	record = binary.LittleEndian.AppendUint16(record, 1_000_000&0xffff)
	record = binary.LittleEndian.AppendUint32(record, uint32(size))
	record = binary.LittleEndian.AppendUint32(record, uint32(offset))
	record = append(record, 0, 0)
	if _, err := w.Write(text[:end64]); err != nil {
		return err
	}
	_, err := w.Write(record)
	return err
}

// cutShort writes the first half.
func cutShort(write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		_, err := w.Write(b.Bytes()[:b.Len()/2])
		return err
	}
}

func TestHostileZipsAreWhatTheyClaim(t *testing.T) {
	e2e.NeedBinary(t)
	var b bytes.Buffer
	if err := deniedMillion(&b); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(r.File) != 1_000_000 {
		t.Fatalf("got %v; want a million entries that a reader takes", err)
	}
}
