package debian

import (
	"context"
	"io"
)

// A pipe carries bytes from one goroutine to another and, other than io.Pipe,
// holds some megabytes, so that the writer can run ahead.
type pipe struct {
	ctx     context.Context // of the build: ends both sides
	chunks  chan []byte
	free    chan []byte
	err     error // of the writer; set before chunks is closed
	filling []byte
	rest    []byte
	reading []byte
}

func newPipe(ctx context.Context) *pipe {
	return &pipe{ctx: ctx, chunks: make(chan []byte, pipeChunks), free: make(chan []byte, pipeChunks+2)}
}

// Write copies b.
func (p *pipe) Write(b []byte) (int, error) {
	for n := 0; n < len(b); {
		if p.filling == nil {
			p.filling = p.chunk()
		}
		k := copy(p.filling[len(p.filling):cap(p.filling)], b[n:])
		p.filling = p.filling[:len(p.filling)+k]
		n += k
		if len(p.filling) == cap(p.filling) {
			if err := p.flush(); err != nil {
				return n, err
			}
		}
	}
	return len(b), nil
}

func (p *pipe) chunk() []byte {
	select {
	case c := <-p.free:
		return c[:0]
	default:
		return make([]byte, 0, pipeChunk)
	}
}

func (p *pipe) flush() error {
	if len(p.filling) == 0 {
		return nil
	}
	select {
	case p.chunks <- p.filling:
		p.filling = nil
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// closeWith ends the stream; the reader sees err, or io.EOF if that is nil.
func (p *pipe) closeWith(err error) {
	if flushErr := p.flush(); err == nil {
		err = flushErr
	}
	p.err = err
	close(p.chunks)
}

// Read gives what was written, then the writer's error.
func (p *pipe) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.reading != nil {
			p.free <- p.reading // has room for every chunk there is
			p.reading = nil
		}
		select {
		case c, ok := <-p.chunks:
			if !ok && p.err != nil {
				return 0, p.err
			}
			if !ok {
				return 0, io.EOF
			}
			p.reading, p.rest = c, c
		case <-p.ctx.Done():
			return 0, context.Cause(p.ctx)
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
