package otlp

import (
	"encoding/binary"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is an encoded message of protobuf. The numbers of fields are those of
// opentelemetry-proto 1.x; a test reads all with its own types.
type message []byte

func (m message) bytes(field protowire.Number, value []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), value)
}

func (m message) text(field protowire.Number, value string) message {
	return m.bytes(field, []byte(strings.ToValidUTF8(value, "�")))
}

func (m message) varint(field protowire.Number, value uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), value)
}

func (m message) fixed(field protowire.Number, value uint64) message {
	return protowire.AppendFixed64(protowire.AppendTag(m, field, protowire.Fixed64Type), value)
}

func (m message) double(field protowire.Number, value float64) message {
	return m.fixed(field, math.Float64bits(value))
}

// packed is a repeated field of numbers of 64 bits.
func (m message) packed(field protowire.Number, values []uint64) message {
	var all []byte
	for _, v := range values {
		all = binary.LittleEndian.AppendUint64(all, v)
	}
	return m.bytes(field, all)
}

// pair is an attribute with a text.
func pair(name, value string) message {
	return message(nil).text(1, name).bytes(2, message(nil).text(1, value))
}

// data is all of one daemon: field 2 of what is in the envelope's field 1 has the
// parts, each as field 2 of a scope. Traces and metrics have the same form.
func data(resource map[string]string, parts []message) message {
	var from message
	for name, value := range resource {
		from = from.bytes(1, pair(name, value))
	}
	scope := message(nil).bytes(1, message(nil).text(1, "cupola"))
	for _, p := range parts {
		scope = scope.bytes(2, p)
	}
	return message(nil).bytes(1, message(nil).bytes(1, from).bytes(2, scope))
}
