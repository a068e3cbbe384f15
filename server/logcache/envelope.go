package logcache

import "time"

// Envelope is one log line of a source.
type Envelope struct {
	Timestamp  time.Time
	SourceID   string            // an app's GUID
	InstanceID string            // its index: "0"
	Tags       map[string]string // "source_type": "APP/PROC/WEB", …; not to be changed after Append
	Payload    []byte            // the line without its end
	Err        bool              // from stderr
}

// envelopeOverhead is about what an Envelope costs beside its payload; its
// tags are shared by all lines of an instance.
const envelopeOverhead = 144

func (e *Envelope) bytes() int64 { return int64(len(e.Payload)) + envelopeOverhead }
