package h2

import "sync"

// body is what has come of a request's body and was not read.
type body struct {
	chunks []*chunk
	from   int // where the first chunk is read on
	to     int // where the last chunk is written on
	n      int64
}

const chunkBytes = 16 << 10

type chunk [chunkBytes]byte

var chunks = sync.Pool{New: func() any { return new(chunk) }}

func (b *body) write(p []byte) {
	b.n += int64(len(p))
	for len(p) > 0 {
		if len(b.chunks) == 0 || b.to == chunkBytes {
			c, _ := chunks.Get().(*chunk)
			b.chunks, b.to = append(b.chunks, c), 0
		}
		n := copy(b.chunks[len(b.chunks)-1][b.to:], p)
		b.to += n
		p = p[n:]
	}
}

// read reads what there is.
func (b *body) read(p []byte) (n int) {
	for n < len(p) && len(b.chunks) > 0 {
		end := chunkBytes
		if len(b.chunks) == 1 {
			end = b.to
		}
		m := copy(p[n:], b.chunks[0][b.from:end])
		n += m
		if b.from += m; b.from == end {
			chunks.Put(b.chunks[0])
			b.chunks[0] = nil
			b.chunks, b.from = b.chunks[1:], 0
		}
	}
	b.n -= int64(n)
	return n
}

// drop forgets what there is, and returns how much that was.
func (b *body) drop() (n int64) {
	for _, c := range b.chunks {
		chunks.Put(c)
	}
	n = b.n
	*b = body{}
	return n
}
