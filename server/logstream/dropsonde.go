package logstream

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"cupola/server/logcache"
)

// The event types of dropsonde's envelopes (dropsonde-protocol: events/envelope.proto).
const (
	eventHTTP      = 4
	eventLog       = 5
	eventValue     = 6
	eventCounter   = 7
	eventContainer = 9
)

// The fields of dropsonde's envelope.
const (
	fieldOrigin     = 1
	fieldEventType  = 2
	fieldTimestamp  = 6
	fieldHTTP       = 7
	fieldLog        = 8
	fieldValue      = 9
	fieldCounter    = 10
	fieldContainer  = 12
	fieldDeployment = 13
	fieldJob        = 14
	fieldIndex      = 15
	fieldIP         = 16
	fieldTags       = 17
)

// message is an encoded protobuf message.
type message []byte

func (m *message) text(field protowire.Number, s string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), strings.ToValidUTF8(s, "\uFFFD"))
}

func (m *message) bytes(field protowire.Number, b []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), b)
}

func (m *message) number(field protowire.Number, n int64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(n)) //nolint:gosec // protobuf's form of negative numbers
}

func (m *message) double(field protowire.Number, f float64) {
	*m = protowire.AppendFixed64(protowire.AppendTag(*m, field, protowire.Fixed64Type), math.Float64bits(f))
}

// dropsonde gives an envelope as those of the first protocol: a gauge is several,
// unless it is what a container uses (go-loggregator: conversion/tov1.go). A request
// with a method that dropsonde does not know has none.
func dropsonde(e *logcache.Envelope) (all [][]byte) {
	switch e.Kind {
	case logcache.Log:
		all = append(all, base(e, eventLog, fieldLog, logMessage(e), tagSourceType))
	case logcache.Timer:
		if method := slices.Index(methods, e.Tags["method"]) + 1; method > 0 {
			all = append(all, base(e, eventHTTP, fieldHTTP, httpStartStop(e, method), timerTags...))
		}
	case logcache.Counter:
		for _, m := range e.Metrics {
			var counter message
			counter.text(1, m.Name)
			counter.number(2, 0) // the change is unknown
			counter.number(3, int64(m.Value))
			all = append(all, base(e, eventCounter, fieldCounter, counter))
		}
	case logcache.Gauge:
		if usage, ok := containerMetric(e); ok {
			return append(all, base(e, eventContainer, fieldContainer, usage))
		}
		for _, m := range e.Metrics {
			var value message
			value.text(1, m.Name)
			value.double(2, m.Value)
			value.text(3, m.Unit)
			all = append(all, base(e, eventValue, fieldValue, value))
		}
	}
	return all
}

const tagSourceType = "source_type"

// timerTags are the tags that fields of an HttpStartStop have.
var timerTags = []string{"peer_type", "method", "request_id", "uri", "remote_address", "user_agent", "status_code", "content_length", "routing_instance_id", "forwarded"}

// base makes an envelope around an event. The tags that other fields have are left
// out.
func base(e *logcache.Envelope, event int64, field protowire.Number, inner message, without ...string) []byte {
	var m message
	m.text(fieldOrigin, e.Tags["origin"])
	m.number(fieldEventType, event)
	m.number(fieldTimestamp, e.Timestamp.UnixNano())
	m.bytes(field, inner)
	m.text(fieldDeployment, e.Tags["deployment"])
	m.text(fieldJob, e.Tags["job"])
	m.text(fieldIndex, e.Tags["index"])
	m.text(fieldIP, e.Tags["ip"])
	without = append(without, "origin", "deployment", "job", "index", "ip", "__v1_type", "source_id")
	for name, value := range e.Tags {
		if !slices.Contains(without, name) {
			m.tag(name, value)
		}
	}
	m.tag("source_id", e.SourceID)
	if _, ok := e.Tags["instance_id"]; !ok && (e.Kind == logcache.Counter || e.Kind == logcache.Gauge) {
		m.tag("instance_id", e.InstanceID)
	}
	return m
}

func (m *message) tag(name, value string) {
	var pair message
	pair.text(1, name)
	pair.text(2, value)
	m.bytes(fieldTags, pair)
}

func logMessage(e *logcache.Envelope) (m message) {
	const out, err = 1, 2
	m.bytes(1, e.Payload)
	kind := int64(out)
	if e.Err {
		kind = err
	}
	m.number(2, kind)
	m.number(3, e.Timestamp.UnixNano())
	m.text(4, e.SourceID)
	m.text(5, e.Tags[tagSourceType])
	m.text(6, e.InstanceID)
	return m
}

// containerMetric is what a container uses, if e is a gauge of that.
func containerMetric(e *logcache.Envelope) (m message, ok bool) {
	value := map[string]float64{}
	for _, metric := range e.Metrics {
		value[metric.Name] = metric.Value
	}
	for _, name := range []string{"cpu", "memory", "disk", "memory_quota", "disk_quota"} {
		if _, ok := value[name]; !ok {
			return nil, false
		}
	}
	m.text(1, e.SourceID)
	m.number(2, number(e.InstanceID))
	m.double(3, value["cpu"])
	m.number(4, int64(value["memory"]))
	m.number(5, int64(value["disk"]))
	m.number(6, int64(value["memory_quota"]))
	m.number(7, int64(value["disk_quota"]))
	return m, true
}

// methods are the HTTP methods that dropsonde knows, by their number less one.
var methods = []string{"GET", "POST", "PUT", "DELETE", "HEAD", "ACL", "BASELINE_CONTROL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DEBUG", "LABEL", "LINK", "LOCK",
	"MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS", "ORDERPATCH", "PATCH", "PRI", "PROPFIND", "PROPPATCH", "REBIND", "REPORT",
	"SEARCH", "SHOWMETHOD", "SPACEJUMP", "TEXTSEARCH", "TRACE", "TRACK", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION_CONTROL"}

func httpStartStop(e *logcache.Envelope, method int) (m message) {
	const server = 2
	m.number(1, e.Began.UnixNano())
	m.number(2, e.Timestamp.UnixNano())
	m.uuid(3, e.Tags["request_id"])
	m.number(4, server)
	m.number(5, int64(method))
	m.text(6, e.Tags["uri"])
	m.text(7, e.Tags["remote_address"])
	m.text(8, e.Tags["user_agent"])
	m.number(9, number(e.Tags["status_code"]))
	m.number(10, number(e.Tags["content_length"]))
	m.uuid(12, e.SourceID)
	m.number(13, number(e.InstanceID))
	m.text(14, e.Tags["routing_instance_id"])
	for _, from := range strings.Split(e.Tags["forwarded"], "\n") {
		m.text(15, from)
	}
	return m
}

// uuid writes a GUID as two numbers. The field that a message must have is empty
// for what is no GUID.
func (m *message) uuid(field protowire.Number, guid string) {
	raw, err := hex.DecodeString(strings.ReplaceAll(guid, "-", ""))
	if err != nil || len(raw) != 16 {
		raw = make([]byte, 16)
	}
	var pair message
	pair.number(1, int64(binary.LittleEndian.Uint64(raw[:8]))) //nolint:gosec // the same bits
	pair.number(2, int64(binary.LittleEndian.Uint64(raw[8:]))) //nolint:gosec // the same bits
	m.bytes(field, pair)
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
