// Package record frames what files of logs and metrics consist of, so that a reader
// finds the end of what is whole. A record is
//
//	length  uint32, little-endian: bytes of the kind and the body
//	check   uint32, little-endian: CRC-32C of them
//	kind    one byte
//	body
//
// Numbers in bodies are varints, texts have their length before them. What
// follows a record that is not whole is not read: it is what a kill left of the
// last write, or a power cut of the last ones.
package record

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

const (
	head = 8
	// max is how many bytes a kind and a body have at most.
	max = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrInvalid says that a record is not whole, or not one of its file's.
var ErrInvalid = errors.New("invalid record")

// Append appends a record whose body is what body appends.
func Append(b []byte, kind byte, body func([]byte) []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, head)...)
	b = body(append(b, kind))
	content := b[at+head:]
	binary.LittleEndian.PutUint32(b[at:], uint32(len(content)))
	binary.LittleEndian.PutUint32(b[at+4:], crc32.Checksum(content, castagnoli))
	return b
}

// AppendText appends a text with its length.
func AppendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// Cut splits the first record from b.
func Cut(b []byte) (kind byte, body, rest []byte, err error) {
	if len(b) < head {
		return 0, nil, nil, ErrInvalid
	}
	n, check := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	b = b[head:]
	if n == 0 || n > max || int(n) > len(b) || crc32.Checksum(b[:n], castagnoli) != check {
		return 0, nil, nil, ErrInvalid
	}
	return b[0], b[1:n], b[n:], nil
}

// CutText splits the first text from b.
func CutText(b []byte) (text, rest []byte, err error) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, nil, ErrInvalid
	}
	return b[n : n+int(length)], b[n+int(length):], nil
}

// CutNumber splits the first number from b.
func CutNumber(b []byte) (number uint64, rest []byte, err error) {
	number, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, ErrInvalid
	}
	return number, b[n:], nil
}
