// Package guid makes GUIDs: UUIDs of RFC 9562, as lower-case text.
package guid

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	fastrand "math/rand/v2"
)

// OID is the RFC's name space of object identifiers.
const OID = "6ba7b812-9dad-11d1-80b4-00c04fd430c8"

// size is a GUID's length as text.
const size = 36

// New returns a random GUID (version 4) that cannot be guessed.
func New() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return format(id, 4)
}

// instanceSize is the length of an instance's GUID.
const instanceSize = 28

// Instance returns the GUID of an instance as Diego's rep makes it: a random GUID
// (version 4), cut to 28 characters (rep: auctioncellrep/helpers.go).
func Instance() string { return New()[:instanceSize] }

// Fast returns a random GUID (version 4) that is unique but can be guessed. It
// takes no call of the kernel.
func Fast() string {
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:8], fastrand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], fastrand.Uint64())
	return format(id, 4)
}

// Named returns the GUID of a name in a name space, which is a GUID itself: equal
// ones for equal arguments (version 5).
func Named(space, name string) string {
	h := sha1.New()
	for _, part := range []string{space[0:8], space[9:13], space[14:18], space[19:23], space[24:size]} {
		b, err := hex.DecodeString(part)
		if err != nil {
			panic("guid: name space " + space + ": " + err.Error())
		}
		h.Write(b)
	}
	h.Write([]byte(name))
	return format([16]byte(h.Sum(nil)[:16]), 5)
}

func format(id [16]byte, version byte) string {
	id[6] = id[6]&0x0f | version<<4
	id[8] = id[8]&0x3f | 0x80 // the RFC's variant
	var text [size]byte
	at := 0
	for _, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		at += hex.Encode(text[at:], part)
		if at < size {
			text[at] = '-'
			at++
		}
	}
	return string(text[:])
}
