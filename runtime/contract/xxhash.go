package contract

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH64 (xxHash specification, section "XXH64 algorithm description").
const (
	prime1 uint64 = 0x9E3779B185EBCA87
	prime2 uint64 = 0xC2B2AE3D27D4EB4F
	prime3 uint64 = 0x165667B19E3779F9
	prime4 uint64 = 0x85EBCA77C2B2AE63
	prime5 uint64 = 0x27D4EB2F165667C5
)

// xxh64 is the XXH64 of a text with the seed 0.
func xxh64(text string) uint64 {
	rest, h := []byte(text), prime5
	if len(rest) >= 32 {
		lanes := [4]uint64{0, prime2, 0, 0}
		lanes[0] += prime1
		lanes[0] += prime2
		lanes[3] -= prime1
		for ; len(rest) >= 32; rest = rest[32:] {
			for n := range lanes {
				lanes[n] = round(lanes[n], binary.LittleEndian.Uint64(rest[8*n:]))
			}
		}
		h = bits.RotateLeft64(lanes[0], 1) + bits.RotateLeft64(lanes[1], 7) + bits.RotateLeft64(lanes[2], 12) + bits.RotateLeft64(lanes[3], 18)
		for _, lane := range lanes {
			h = (h^round(0, lane))*prime1 + prime4
		}
	}
	h += uint64(len(text))
	for ; len(rest) >= 8; rest = rest[8:] {
		h = bits.RotateLeft64(h^round(0, binary.LittleEndian.Uint64(rest)), 27)*prime1 + prime4
	}
	if len(rest) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(rest))*prime1, 23)*prime2 + prime3
		rest = rest[4:]
	}
	for _, b := range rest {
		h = bits.RotateLeft64(h^uint64(b)*prime5, 11) * prime1
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}

func round(lane, input uint64) uint64 { return bits.RotateLeft64(lane+input*prime2, 31) * prime1 }
