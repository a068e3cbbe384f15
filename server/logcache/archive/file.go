package archive

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// A file is a skippable frame of zstd with the source's name and a filter, and then a frame with the segment:
// 'zstd -d' reads it.
const (
	magic   = 0x184D2A5C // the twelfth of those that zstd skips (RFC 8878, 3.1.2)
	version = 1
	// filterBytes is the size of the filter: a segment of a MB of log lines has some thousand different
	// groups of three bytes, for which 65,536 bits are room enough.
	filterBytes = 8 << 10
	// maxName bounds the name of a source, maxSegment a segment.
	maxName    = 1 << 10
	maxSegment = 64 << 20
)

// headBytes is what comes before the source's name: magic, size, version, filter, length of the name.
const headBytes = 4 + 4 + 1 + filterBytes + 2

var errDamaged = errors.New("the file of old log lines is damaged")

func (a *Archive) encode(source string, segment []byte) ([]byte, error) {
	if len(source) > maxName || len(segment) > maxSegment {
		return nil, errors.New("a segment of log lines is too large to be kept")
	}
	head := make([]byte, headBytes, headBytes+len(source)+len(segment)/4)
	binary.LittleEndian.PutUint32(head, magic)
	binary.LittleEndian.PutUint32(head[4:], uint32(headBytes-8+len(source)))
	head[8] = version
	filter(head[9 : 9+filterBytes]).add(segment)
	binary.LittleEndian.PutUint16(head[9+filterBytes:], uint16(len(source)))
	head = append(head, source...)
	a.encoding.Lock()
	defer a.encoding.Unlock()
	return a.encoder.EncodeAll(segment, head), nil
}

// header reads what comes before the segment.
func header(r io.Reader) (source string, f filter, err error) {
	head := make([]byte, headBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		return "", nil, errDamaged
	}
	length := binary.LittleEndian.Uint16(head[9+filterBytes:])
	if binary.LittleEndian.Uint32(head) != magic || head[8] != version || binary.LittleEndian.Uint32(head[4:]) != headBytes-8+uint32(length) || length > maxName {
		return "", nil, errDamaged
	}
	name := make([]byte, length)
	if _, err := io.ReadFull(r, name); err != nil {
		return "", nil, errDamaged
	}
	return string(name), head[9 : 9+filterBytes], nil
}

// sourceOf is the source of a file.
func sourceOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	source, _, err := header(f)
	return source, err
}

// Read reads a file's segment; nil if text is surely not in it, whatever its case.
func (f File) Read(text string) ([]byte, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, ignoreMissing(err) // it was deleted meanwhile
	}
	defer file.Close()
	_, has, err := header(file)
	if err != nil || !has.mayHave(text) {
		return nil, err
	}
	packed, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSegment))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(packed, nil)
}

// filter is a set of hashes of all groups of three bytes that a text has, in lower case.
type filter []byte

func (f filter) add(text []byte) {
	eachGroup(text, func(bit uint32) bool {
		f[bit/8] |= 1 << (bit % 8)
		return true
	})
}

// mayHave reports whether the text of which the filter was made may contain another one.
func (f filter) mayHave(text string) bool {
	has := true
	eachGroup([]byte(text), func(bit uint32) bool {
		has = f[bit/8]&(1<<(bit%8)) != 0
		return has
	})
	return has
}

// eachGroup calls each with the hash of every group of three bytes until it returns false. Bytes beyond
// ASCII are all the same: their case is not known.
func eachGroup(text []byte, each func(bit uint32) bool) {
	var group uint32
	for n, b := range text {
		switch {
		case b >= 'A' && b <= 'Z':
			b += 'a' - 'A'
		case b >= 0x80:
			b = 0x80
		}
		group = (group<<8 | uint32(b)) & 0xffffff
		if n >= 2 && !each((group*0x9E3779B1)>>16%(filterBytes*8)) {
			return
		}
	}
}
