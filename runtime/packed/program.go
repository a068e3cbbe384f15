// Package packed opens programs that are embedded in the daemon's, compressed: they
// are a third of its size otherwise.
package packed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"
)

// extension ends the name of a packed program.
const extension = ".zst"

// window bounds what unpacking takes of memory.
const window = 1 << 20

// Pack compresses a program: equal programs become equal bytes.
func Pack(program []byte) ([]byte, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.EncodeAll(program, nil), nil
}

// Program is an open one: it reads what was packed.
type Program struct {
	io.Reader
	Size int64 // unpacked
	file fs.File
	zstd *zstd.Decoder
}

// Open opens a program by its name without the extension. The caller closes it.
func Open(from fs.FS, name string) (*Program, error) {
	f, err := from.Open(name + extension)
	if err != nil {
		return nil, err
	}
	p, err := open(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("unpack %s: %w", name, err)
	}
	return p, nil
}

func open(f fs.File) (*Program, error) {
	var head zstd.Header
	start := make([]byte, zstd.HeaderMaxSize)
	n, err := io.ReadFull(f, start)
	if err != nil && n == 0 {
		return nil, err
	}
	if err := head.Decode(start[:n]); err != nil {
		return nil, err
	}
	if !head.HasFCS {
		return nil, errors.New("its size is missing")
	}
	if _, err := f.(io.Seeker).Seek(0, io.SeekStart); err != nil { // embed promises it for files
		return nil, err
	}
	d, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(2*window))
	if err != nil {
		return nil, err
	}
	return &Program{Reader: d, Size: int64(head.FrameContentSize), file: f, zstd: d}, nil
}

// Close gives back what unpacking has taken.
func (p *Program) Close() error {
	p.zstd.Close()
	return p.file.Close()
}
