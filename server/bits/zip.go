package bits

import (
	"archive/zip"
	"errors"
	"io"
	"math"
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
	r := &boundedReader{r: f, left: maxDirectory}
	z, err := zip.NewReader(r, info.Size())
	var invalid *Invalid
	switch {
	case errors.As(err, &invalid):
		return nil, invalid
	case err != nil:
		return nil, &Invalid{"", "is no valid zip file: " + strings.TrimPrefix(err.Error(), "zip: ")}
	}
	r.left = math.MaxInt64 // entries have bounds of their own
	return z, nil
}

// boundedReader fails when more is read than is left. A zip's own word on how
// large its directory is cannot be trusted.
type boundedReader struct {
	r    io.ReaderAt
	left int64
}

func (b *boundedReader) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, &Invalid{"", "has too many entries"}
	}
	return b.r.ReadAt(p, off)
}
