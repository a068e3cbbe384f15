package pack

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// block is what a tar is made of.
const block = 512

// extent is a part of a file that is not a hole.
type extent struct{ offset, size int64 }

// Parts of a file that lie closer together than minGap are written as one, with
// the zeros between: unpacking makes no smaller holes. A map of more parts than
// maxExtents would be refused by archive/tar, which reads a megabyte of it.
const (
	minGap     = 64 << 10
	maxExtents = 20_000
)

func hasHoles(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Blocks*512 < st.Size-minGap
}

// sparse writes a file without its holes. archive/tar reads such files and
// writes none, so that their headers are made here.
func (p *packer) sparse(h *tar.Header, f *os.File) error {
	list, err := extents(f, h.Size)
	if err != nil {
		return err
	}
	if err := p.t.Flush(); err != nil { // what follows goes past it
		return err
	}
	layout := layoutOf(list)
	size := int64(len(layout))
	for _, e := range list {
		size += e.size
	}
	records := paxRecords(h)
	for _, part := range [][]byte{rawHeader("PaxHeaders.0/file", tar.TypeXHeader, 0o644, 0, 0, 0, int64(len(records))), padded(records),
		rawHeader("GNUSparseFile.0/file", tar.TypeReg, h.Mode, h.Uid, h.Gid, h.ModTime.Unix(), size), layout} {
		if _, err := p.w.Write(part); err != nil {
			return err
		}
	}
	for _, e := range list {
		if _, err := io.CopyN(p.w, &reader{p.ctx, io.NewSectionReader(f, e.offset, e.size)}, e.size); err != nil {
			return err
		}
	}
	_, err = p.w.Write(make([]byte, -size&(block-1)))
	return err
}

// extents returns the parts of a file that are not holes.
func extents(f *os.File, size int64) (list []extent, err error) {
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("look for holes: %w", err)
		}
		end, err := unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return nil, fmt.Errorf("look for holes: %w", err)
		}
		at = min(end, size)
		list = append(list, extent{start, at - start})
	}
	return fewer(joined(list, minGap, len(list))), nil
}

// joined joins the parts that lie closer together than gap, so many at most.
func joined(list []extent, gap int64, most int) []extent {
	var out []extent
	for _, e := range list {
		if n := len(out) - 1; n >= 0 && most > 0 && e.offset-out[n].offset-out[n].size < gap {
			out[n].size = e.offset + e.size - out[n].offset
			most--
			continue
		}
		out = append(out, e)
	}
	return out
}

// fewer joins those parts that lie closest together, until there are no more
// than maxExtents.
func fewer(list []extent) []extent {
	more := len(list) - maxExtents
	if more <= 0 {
		return list
	}
	gaps := make([]int64, len(list)-1)
	for n := range gaps {
		gaps[n] = list[n+1].offset - list[n].offset - list[n].size
	}
	slices.Sort(gaps)
	return joined(list, gaps[more-1]+1, more)
}

// layoutOf says where the parts are, as it stands before them.
func layoutOf(list []extent) []byte {
	text := fmt.Appendf(nil, "%d\n", len(list))
	for _, e := range list {
		text = fmt.Appendf(text, "%d\n%d\n", e.offset, e.size)
	}
	return padded(text)
}

func padded(b []byte) []byte { return append(b, make([]byte, -len(b)&(block-1))...) }

// paxRecords are those of a sparse file, its attributes among them.
func paxRecords(h *tar.Header) []byte {
	all := map[string]string{"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": h.Name, "GNU.sparse.realsize": strconv.FormatInt(h.Size, 10)}
	maps.Copy(all, h.PAXRecords)
	var text []byte
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text = append(text, paxRecord(key, all[key])...)
	}
	return text
}

// paxRecord begins with its own length, which counts its digits too.
func paxRecord(key, value string) string {
	rest := len(key) + len(value) + 3 // a space, '=' and the line's end
	size := rest + len(strconv.Itoa(rest))
	size = rest + len(strconv.Itoa(size))
	return strconv.Itoa(size) + " " + key + "=" + value + "\n"
}

// rawHeader is a header block as ustar has it.
func rawHeader(name string, kind byte, mode int64, uid, gid int, mtime, size int64) []byte {
	b := make([]byte, block)
	copy(b, name)
	for _, n := range []struct {
		at, width int
		value     int64
	}{{100, 8, mode}, {108, 8, int64(uid)}, {116, 8, int64(gid)}, {124, 12, size}, {136, 12, max(mtime, 0)}} {
		number(b[n.at:n.at+n.width], n.value)
	}
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	copy(b[148:156], bytes.Repeat([]byte(" "), 8))
	var sum int64
	for _, c := range b {
		sum += int64(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// number writes octal digits, or the binary that GNU's tar has where they would
// be too many.
func number(to []byte, n int64) {
	if text := fmt.Sprintf("%0*o", len(to)-1, n); len(text) < len(to) {
		copy(to, text)
		return
	}
	clear(to)
	binary.BigEndian.PutUint64(to[len(to)-8:], uint64(n))
	to[0] |= 0x80
}
