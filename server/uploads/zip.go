package uploads

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxDirectory bounds a zip's directory, which is read into memory whole:
// 300,000 entries of 200 bytes. Bytes.
const maxDirectory = 60 << 20

// openZip opens a zip. It returns a refusal when f is not a zip, or when its
// directory is too large for memory.
func openZip(f *os.File) (*zip.Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := &boundedReader{r: f, left: maxDirectory, entries: defaultLimits.Entries + tailEntries}
	z, err := zip.NewReader(r, info.Size())
	var invalid *refusal
	switch {
	case errors.As(err, &invalid):
		return nil, invalid
	case err != nil:
		return nil, &refusal{"", "is not a valid zip file: " + strings.TrimPrefix(err.Error(), "zip: ")}
	}
	r.free = true // entries are bounded by the checker
	return z, nil
}

// directoryEntry is what every entry of the directory begins with.
const directoryEntry = "PK\x01\x02"

// tailEntries is how many entries are read twice: a zip.Reader looks for the
// directory's end in the last 65 KiB.
const tailEntries = 2000

// boundedReader fails when too many bytes or directory entries are read: a
// zip.Reader allocates 300 bytes for each entry of 50. The directory size that a
// zip declares cannot be trusted.
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
		return 0, &refusal{"", "has too many entries"}
	}
	n, err := b.r.ReadAt(p, off)
	if b.entries -= b.count(p[:n], off); b.entries < 0 {
		return 0, &refusal{"", fmt.Sprintf("has more than %d entries", defaultLimits.Entries)}
	}
	return n, err
}

// count returns how many entries begin in p, including one cut at p's start when
// p continues the last read.
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
