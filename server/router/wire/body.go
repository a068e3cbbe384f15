package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
)

// Body reads a body from a connection.
type Body struct {
	// Trailer is what follows the last chunk; valid after io.EOF, nil for none.
	Trailer http.Header

	r       *bufio.Reader
	left    int64 // of the body or of a chunk
	chunked bool
	inChunk bool  // the end of a chunk's data is still to come
	endless bool  // the body ends with the connection
	err     error // io.EOF once the body was read
}

// Reset begins a body: of length bytes, or in chunks, or, where length is negative,
// up to the end of the connection.
func (b *Body) Reset(r *bufio.Reader, length int64, chunked bool) {
	*b = Body{r: r, left: length, chunked: chunked, endless: !chunked && length < 0}
	if chunked {
		b.left = 0
	} else if length == 0 {
		b.err = io.EOF
	}
}

// Left is how much is left of a body of known length; -1 for others.
func (b *Body) Left() int64 {
	if b.chunked || b.endless {
		return -1
	}
	return b.left
}

// Skip notes that n bytes were read past the Body.
func (b *Body) Skip(n int64) {
	if b.left -= n; b.left == 0 {
		b.err = io.EOF
	}
}

// Ended reports whether the body was read to its end.
func (b *Body) Ended() bool { return b.err == io.EOF }

// Read reads what has come. It waits only if nothing has. It returns io.EOF with
// the last bytes if their end is known by then.
func (b *Body) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	switch {
	case b.chunked:
		n, b.err = b.readChunks(p)
	case b.endless:
		n, b.err = b.r.Read(p)
	default:
		n, b.err = b.readLeft(p)
		if b.left == 0 {
			b.err = io.EOF
		}
	}
	return n, b.err
}

// readLeft reads of what is left.
func (b *Body) readLeft(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if err == io.EOF && b.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *Body) readChunks(p []byte) (n int, err error) {
	for n < len(p) {
		if b.left == 0 {
			if n > 0 && !b.lineHasCome() {
				return n, nil
			}
			if err := b.nextChunk(); err != nil {
				return n, err
			}
		}
		if n > 0 && b.r.Buffered() == 0 {
			return n, nil
		}
		m, err := b.readLeft(p[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// lineHasCome reports whether the next chunk's size is there to be read.
func (b *Body) lineHasCome() bool {
	have, _ := b.r.Peek(b.r.Buffered()) // has no error for what is buffered
	if b.inChunk {
		if len(have) < 2 {
			return false
		}
		have = have[2:]
	}
	return bytes.IndexByte(have, '\n') >= 0
}

// errChunk is what is wrong with a body whose chunks cannot be told apart.
var errChunk = errors.New("malformed chunked encoding")

// nextChunk begins the next chunk; io.EOF after the last one and its trailer.
func (b *Body) nextChunk() error {
	if b.inChunk {
		if text, err := b.readLine(); err != nil || len(text) > 0 {
			return orElse(err, errChunk)
		}
		b.inChunk = false
	}
	text, err := b.readLine()
	if err != nil {
		return err
	}
	size, ok := chunkSize(text)
	if !ok {
		return errChunk
	}
	if size == 0 {
		return orElse(b.readTrailer(), io.EOF)
	}
	b.left, b.inChunk = size, true
	return nil
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// chunkSize reads a chunk's size; extensions are dropped.
func chunkSize(text []byte) (size int64, ok bool) {
	text, _, _ = bytes.Cut(text, []byte(";"))
	text = bytes.TrimRight(text, " \t")
	if len(text) == 0 || len(text) > 15 {
		return 0, false
	}
	for _, c := range text {
		d := digit(c)
		if d < 0 {
			return 0, false
		}
		size = size<<4 | int64(d)
	}
	return size, true
}

// readLine reads a line that ends in CR LF.
func (b *Body) readLine() ([]byte, error) {
	text, err := b.r.ReadSlice('\n')
	switch {
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	case err == bufio.ErrBufferFull:
		return nil, errChunk
	case err != nil:
		return nil, err
	case len(text) < 2 || text[len(text)-2] != '\r':
		return nil, errChunk
	}
	return text[:len(text)-2], nil
}

// maxTrailers bounds how many trailers a body has.
const maxTrailers = 100

// readTrailer reads what follows the last chunk.
func (b *Body) readTrailer() error {
	for range maxTrailers {
		text, err := b.readLine()
		if err != nil || len(text) == 0 {
			return err
		}
		f, ok := split(text)
		if !ok {
			return errChunk
		}
		if b.Trailer == nil {
			b.Trailer = http.Header{}
		}
		key := textproto.CanonicalMIMEHeaderKey(string(text[:f.nameEnd]))
		b.Trailer[key] = append(b.Trailer[key], string(text[f.value:f.valueEnd]))
	}
	return errChunk
}
