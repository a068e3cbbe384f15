package logcache

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"cupola/server/logcache/record"
)

// A segment is a file of one source's log lines, in the order they came: a
// source record, and then lines, each after the tags that it is the first to
// have.
const (
	sourceRecord = 's' // the source ID
	tagsRecord   = 't' // number, instance ID, then names and values; holds until the number is given again
	lineRecord   = 'l' // number of its tags, nanoseconds since 1970, 1 for stderr, then the line
)

func appendSource(b []byte, id string) []byte {
	return record.Append(b, sourceRecord, func(b []byte) []byte { return record.AppendText(b, id) })
}

// appendTags is the part of a tags record that follows its number.
func appendTags(b []byte, instanceID string, tags map[string]string) []byte {
	b = record.AppendText(b, instanceID)
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		b = record.AppendText(record.AppendText(b, name), tags[name])
	}
	return b
}

func appendLine(b []byte, tags uint64, e *Envelope) []byte {
	return record.Append(b, lineRecord, func(b []byte) []byte {
		b = binary.AppendVarint(binary.AppendUvarint(b, tags), e.Timestamp.UnixNano())
		var stderr byte
		if e.Err {
			stderr = 1
		}
		return record.AppendText(append(b, stderr), e.Payload)
	})
}

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
		kind, body, rest, err := record.Cut(b[s.bytes:])
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
			err = record.ErrInvalid
		}
		if err != nil {
			return s
		}
		s.bytes = len(b) - len(rest)
	}
}

func (s *segment) readSource(b []byte) error {
	id, _, err := record.CutText(b)
	if err != nil || s.source != "" || len(id) == 0 {
		return record.ErrInvalid
	}
	s.source = string(id)
	return nil
}

func readTags(b []byte, all map[uint64]Envelope) error {
	number, n := binary.Uvarint(b)
	if n <= 0 {
		return record.ErrInvalid
	}
	instance, b, err := record.CutText(b[n:])
	var tags map[string]string
	for err == nil && len(b) > 0 {
		var name, value []byte
		if name, b, err = record.CutText(b); err == nil {
			value, b, err = record.CutText(b)
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
		return record.ErrInvalid
	}
	at, m := binary.Varint(b[n:])
	if m <= 0 || len(b) == n+m {
		return record.ErrInvalid
	}
	b = b[n+m:]
	e, ok := tags[number]
	text, _, err := record.CutText(b[1:])
	if err != nil || !ok {
		return record.ErrInvalid
	}
	e.SourceID, e.Timestamp, e.Err, e.Payload = s.source, time.Unix(0, at), b[0] != 0, bytes.Clone(text) // a clone, so that one line does not keep the whole segment in memory
	s.lines = append(s.lines, e)
	return nil
}
