package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"sync"
	"syscall"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"

	"cupola/runtime/fault"
)

// Decompress sniffs gzip, zstd and xz by their magic numbers; anything else is passed through. Closing the result frees
// the decoder and leaves r alone. Errors that are the input's fault are an *EntryError.
func Decompress(r io.Reader) (io.ReadCloser, error) {
	br := bufio.NewReaderSize(r, 256<<10)
	magic, err := br.Peek(6)
	if err != nil && err != io.EOF {
		return nil, err
	}
	plain, err := decoder(br, magic)
	if err != nil {
		return nil, blame(err)
	}
	return decoded{plain}, nil
}

const maxWindow = 128 << 20 // of zstd and xz: what the strongest usual settings need

func decoder(br *bufio.Reader, magic []byte) (io.ReadCloser, error) {
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(br)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		zr, err := zstd.NewReader(br, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return zr.IOReadCloser(), nil
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ\x00")):
		zr, err := xz.NewReader(br, maxWindow)
		return io.NopCloser(zr), err
	}
	return io.NopCloser(br), nil
}

// decoded blames the archive for the decoder's errors.
type decoded struct{ io.ReadCloser }

func (d decoded) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = blame(err)
	}
	return n, err
}

// blame tells a damaged archive from a disk that does not read.
func blame(err error) error {
	_, known := errors.AsType[*EntryError](err)
	_, path := errors.AsType[*fs.PathError](err)
	_, errno := errors.AsType[syscall.Errno](err)
	switch {
	case known || path || errno:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF:
		return &EntryError{Reason: "ends too early"}
	}
	return &EntryError{Reason: "is damaged: " + err.Error()}
}

// counter reports how far the archive was read.
type counter struct {
	r        io.Reader
	n        int64
	progress func(int64)
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.progress != nil && n > 0 {
		c.progress(c.n)
	}
	return n, err
}

const (
	aheadChunk = 1 << 20
	aheadDepth = 4
)

// ahead lets decompression run concurrently with the writing of files: in chunks of a MiB, since a hand-over per read would cost
// more than it saves.
type ahead struct {
	full, free chan []byte // aheadDepth buffers go round, so that no send ever waits
	quit       chan struct{}
	stop       sync.Once
	err        error // set before full is closed
	all, rest  []byte
}

func readAhead(r io.Reader) *ahead {
	a := &ahead{full: make(chan []byte, aheadDepth), free: make(chan []byte, aheadDepth), quit: make(chan struct{})}
	for range aheadDepth {
		a.free <- nil
	}
	fault.Go("unpack", func() {
		defer close(a.full)
		if err := fault.Guard("unpack", func() error { a.fill(r); return nil }); err != nil {
			a.err = err
		}
	})
	return a
}

func (a *ahead) fill(r io.Reader) {
	for a.err == nil {
		var buf []byte
		select {
		case <-a.quit:
			a.err = io.ErrClosedPipe
			return
		case buf = <-a.free:
		}
		if buf == nil {
			buf = make([]byte, aheadChunk)
		}
		n := 0
		for n < len(buf) && a.err == nil {
			var m int
			m, a.err = r.Read(buf[n:])
			n += m
		}
		if n > 0 {
			a.full <- buf[:n]
		}
	}
}

func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.all != nil {
			a.free <- a.all[:cap(a.all)]
			a.all = nil
		}
		buf, ok := <-a.full
		if !ok {
			return 0, a.err
		}
		a.all, a.rest = buf, buf
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// end stops the reading goroutine and waits for it, so that the source may be closed.
func (a *ahead) end() {
	a.stop.Do(func() { close(a.quit) })
	for range a.full {
	}
}
