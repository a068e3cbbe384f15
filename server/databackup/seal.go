package databackup

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"cupola/runtime/durable"
)

// A sealed file is a sequence of chunks, each encrypted with AES-256-GCM under a key that
// seals nothing else. The nonce is the chunk's number, and whether it is the last one: a
// file that was cut, or whose chunks were moved, cannot be read.
const (
	chunk    = 64 << 10
	overhead = 16 // of a chunk
)

// aeadOf makes the cipher of a key in hex.
func aeadOf(key string) (cipher.AEAD, error) {
	raw, err := hex.DecodeString(key)
	if err != nil {
		return nil, fmt.Errorf("key of a backup: %w", err)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func nonce(number uint64, last bool) []byte {
	n := binary.BigEndian.AppendUint64(make([]byte, 3), number)
	if last {
		return append(n, 1)
	}
	return append(n, 0)
}

// sealer seals what is written to it. Close writes the last chunk.
type sealer struct {
	to     io.Writer
	aead   cipher.AEAD
	number uint64
	plain  []byte
	size   int64 // that was written to it
}

func newSealer(to io.Writer, key string) (*sealer, error) {
	aead, err := aeadOf(key)
	return &sealer{to: to, aead: aead}, err
}

// Write seals full chunks as soon as there is more: the last one is Close's.
func (s *sealer) Write(p []byte) (int, error) {
	s.plain = append(s.plain, p...)
	s.size += int64(len(p))
	for len(s.plain) > chunk {
		if err := s.seal(s.plain[:chunk], false); err != nil {
			return 0, err
		}
		s.plain = append(s.plain[:0], s.plain[chunk:]...)
	}
	return len(p), nil
}

func (s *sealer) Close() error { return s.seal(s.plain, true) }

func (s *sealer) seal(plain []byte, last bool) error {
	_, err := s.to.Write(s.aead.Seal(nil, nonce(s.number, last), plain, nil))
	s.number++
	return err
}

// unseal writes the content of a sealed file. After an error the caller must discard what
// was written.
func unseal(to io.Writer, from io.Reader, key string) error {
	aead, err := aeadOf(key)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(from, chunk+overhead+1)
	for number, last := uint64(0), false; !last; number++ {
		sealed := make([]byte, chunk+overhead)
		n, err := io.ReadFull(in, sealed)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.Join(durable.ErrDamaged, err)
		}
		_, err = in.Peek(1)
		last = err == io.EOF
		plain, err := aead.Open(sealed[:0], nonce(number, last), sealed[:n], nil)
		if err != nil {
			return durable.ErrDamaged
		}
		if _, err := to.Write(plain); err != nil {
			return err
		}
	}
	return nil
}
