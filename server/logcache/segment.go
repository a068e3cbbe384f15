package logcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"time"
)

// A segment is a file of one source's log lines, in the order they came: a
// source record, and then lines, each after the tags that it is the first to
// have. A record is
//
//	length  uint32, little-endian: bytes of the kind and the body
//	check   uint32, little-endian: CRC-32C of them
//	kind    one byte
//	body
//
// Numbers in bodies are varints, texts have their length before them. What
// follows a record that is not whole is not read: it is what a kill left of the
// last write, or a power cut of the last ones.
const (
	sourceRecord = 's' // the source ID
	tagsRecord   = 't' // number, instance ID, then names and values; holds until the number is given again
	lineRecord   = 'l' // number of its tags, nanoseconds since 1970, 1 for stderr, then the line
)

const (
	recordHead = 8
	maxRecord  = 1 << 20 // bytes of a kind and a body; lines have 64 KiB at most
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends a record whose body is what body appends.
func appendRecord(b []byte, kind byte, body func([]byte) []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, recordHead)...)
	b = body(append(b, kind))
	content := b[at+recordHead:]
	binary.LittleEndian.PutUint32(b[at:], uint32(len(content)))
	binary.LittleEndian.PutUint32(b[at+4:], crc32.Checksum(content, castagnoli))
	return b
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendSource(b []byte, id string) []byte {
	return appendRecord(b, sourceRecord, func(b []byte) []byte { return appendText(b, id) })
}

// appendTags is the part of a tags record that follows its number.
func appendTags(b []byte, instanceID string, tags map[string]string) []byte {
	b = appendText(b, instanceID)
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		b = appendText(appendText(b, name), tags[name])
	}
	return b
}

func appendLine(b []byte, tags uint64, e *Envelope) []byte {
	return appendRecord(b, lineRecord, func(b []byte) []byte {
		b = binary.AppendVarint(binary.AppendUvarint(b, tags), e.Timestamp.UnixNano())
		var stderr byte
		if e.Err {
			stderr = 1
		}
		return appendText(append(b, stderr), e.Payload)
	})
}

// errRecord says that a record is not whole, or not this package's.
var errRecord = errors.New("invalid record")

// segment is what a file holds.
type segment struct {
	source string
	lines  []Envelope
	bytes  int // of the records that are whole
}

// parseSegment reads the records that are whole.
func parseSegment(b []byte) (s segment) {
	tags := map[uint64]Envelope{}
	for {
		kind, body, rest, err := cutRecord(b[s.bytes:])
		if err != nil || s.source == "" && kind != sourceRecord {
			return s
		}
		switch kind {
		case sourceRecord:
			err = s.readSource(body)
		case tagsRecord:
			err = readTags(body, tags)
		case lineRecord:
			err = s.readLine(body, tags)
		default:
			err = errRecord
		}
		if err != nil {
			return s
		}
		s.bytes = len(b) - len(rest)
	}
}

func cutRecord(b []byte) (kind byte, body, rest []byte, err error) {
	if len(b) < recordHead {
		return 0, nil, nil, errRecord
	}
	n, check := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	b = b[recordHead:]
	if n == 0 || n > maxRecord || int(n) > len(b) || crc32.Checksum(b[:n], castagnoli) != check {
		return 0, nil, nil, errRecord
	}
	return b[0], b[1:n], b[n:], nil
}

func (s *segment) readSource(b []byte) error {
	id, _, err := cutText(b)
	if err != nil || s.source != "" || len(id) == 0 {
		return errRecord
	}
	s.source = string(id)
	return nil
}

func readTags(b []byte, all map[uint64]Envelope) error {
	number, n := binary.Uvarint(b)
	if n <= 0 {
		return errRecord
	}
	instance, b, err := cutText(b[n:])
	var tags map[string]string
	for err == nil && len(b) > 0 {
		var name, value []byte
		if name, b, err = cutText(b); err == nil {
			value, b, err = cutText(b)
			if tags == nil {
				tags = map[string]string{}
			}
			tags[string(name)] = string(value)
		}
	}
	if err != nil {
		return err
	}
	all[number] = Envelope{InstanceID: string(instance), Tags: tags}
	return nil
}

func (s *segment) readLine(b []byte, tags map[uint64]Envelope) error {
	number, n := binary.Uvarint(b)
	if n <= 0 {
		return errRecord
	}
	at, m := binary.Varint(b[n:])
	if m <= 0 || len(b) == n+m {
		return errRecord
	}
	b = b[n+m:]
	e, ok := tags[number]
	text, _, err := cutText(b[1:])
	if err != nil || !ok {
		return errRecord
	}
	e.SourceID, e.Timestamp, e.Err, e.Payload = s.source, time.Unix(0, at), b[0] != 0, bytes.Clone(text) // a clone, so that one line does not keep the whole segment in memory
	s.lines = append(s.lines, e)
	return nil
}

func cutText(b []byte) (text, rest []byte, err error) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, nil, errRecord
	}
	return b[n : n+int(length)], b[n+int(length):], nil
}
