package bits

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxDirectory bounds the directory of a zip, which is read into memory whole:
// 300,000 entries of 200 bytes. Bytes.
const maxDirectory = 60 << 20

// OpenZip opens a zip. One that is none, or whose directory is too large to be
// held in memory, is Invalid.
func OpenZip(f *os.File) (*zip.Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := &boundedReader{r: f, left: maxDirectory, entries: DefaultLimits.Entries + tailEntries}
	z, err := zip.NewReader(r, info.Size())
	var invalid *Invalid
	switch {
	case errors.As(err, &invalid):
		return nil, invalid
	case err != nil:
		return nil, &Invalid{"", "is no valid zip file: " + strings.TrimPrefix(err.Error(), "zip: ")}
	}
	r.free = true // what follows are entries, which have bounds of their own
	return z, nil
}

// directoryEntry is what every entry of the directory begins with.
const directoryEntry = "PK\x01\x02"

// tailEntries is how many entries are read twice, as a zip.Reader looks for the
// end of the directory in the last 65 KiB.
const tailEntries = 2000

// boundedReader fails when more is read than is left, or more entries of the
// directory than there may be: a zip.Reader takes 300 bytes for each of 50. A
// zip's own word on how large its directory is cannot be trusted.
type boundedReader struct {
	r       io.ReaderAt
	left    int64
	entries int
	free    bool   // of all bounds
	next    int64  // where the last read ended
	last    []byte // what stands before that, less than an entry's beginning
}

func (b *boundedReader) ReadAt(p []byte, off int64) (int, error) {
	if b.free {
		return b.r.ReadAt(p, off)
	}
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, &Invalid{"", "has too many entries"}
	}
	n, err := b.r.ReadAt(p, off)
	if b.entries -= b.count(p[:n], off); b.entries < 0 {
		return 0, &Invalid{"", fmt.Sprintf("has more than %d entries", DefaultLimits.Entries)}
	}
	return n, err
}

// count gives how many entries begin in p, and at its beginning if it continues
// the last read.
func (b *boundedReader) count(p []byte, off int64) int {
	if off != b.next {
		b.last = b.last[:0]
	}
	entry, short := []byte(directoryEntry), len(directoryEntry)-1
	joint := append(b.last, p[:min(short, len(p))]...)
	n := bytes.Count(joint, entry) + bytes.Count(p, entry)
	tail := p
	if len(p) < short {
		tail = joint
	}
	b.next, b.last = off+int64(len(p)), bytes.Clone(tail[max(0, len(tail)-short):])
	return n
}
