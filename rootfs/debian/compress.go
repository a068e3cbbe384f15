package debian

import (
	"bufio"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
)

// maxDictionary bounds the memory a compressed stream may ask for: xz -9 needs
// 64 MiB, and Ubuntu's zstd -19 less.
const maxDictionary = 128 << 20

// decompress wraps r by the extension of name: ".gz", ".xz", ".zst" or none.
func decompress(name string, r io.Reader) (io.ReadCloser, error) {
	r = bufio.NewReaderSize(r, 256<<10)
	switch extension(name) {
	case ".gz":
		return gzip.NewReader(r)
	case ".xz":
		x, err := xz.NewReader(r, maxDictionary)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(x), nil
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxDictionary))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case "", ".tar":
		return io.NopCloser(r), nil
	}
	return nil, fmt.Errorf("compressed as %s, which is not gzip, xz or zstd", extension(name))
}

func extension(name string) string {
	for i := len(name) - 1; i >= 0 && name[i] != '/'; i-- {
		if name[i] == '.' {
			return name[i:]
		}
	}
	return ""
}
