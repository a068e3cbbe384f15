package repository

import "hash/crc32"

// Where a stream may be cut: after a block whose checksum ends with the bits of
// cutMask, which is each 1,024th. Tars and databases consist of whole blocks, so that
// what moves within them is cut alike.
const (
	block    = 512
	cutMask  = 1<<10 - 1
	chunkMin = 128 << 10
	chunkMax = 4 << 20
)

// cutter cuts what is written to it into chunks.
type cutter struct {
	each    func(chunk []byte) error // must not keep chunk
	pending []byte
	looked  int // of pending, where no cut is
}

// Write takes the next bytes of the stream.
func (c *cutter) Write(p []byte) (int, error) {
	c.pending = append(c.pending, p...)
	for c.looked+block <= len(c.pending) {
		end := c.looked + block
		sum := crc32.ChecksumIEEE(c.pending[c.looked:end])
		c.looked = end
		if (end < chunkMin || sum&cutMask != cutMask) && end < chunkMax {
			continue
		}
		if err := c.each(c.pending[:end]); err != nil {
			return 0, err
		}
		c.pending = append(c.pending[:0], c.pending[end:]...)
		c.looked = 0
	}
	return len(p), nil
}

// Close gives the last chunk.
func (c *cutter) Close() error {
	if len(c.pending) == 0 {
		return nil
	}
	return c.each(c.pending)
}
