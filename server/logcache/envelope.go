package logcache

import (
	"regexp"
	"slices"
	"time"
)

// Envelope is one log line of a source, or what was measured of it at once.
type Envelope struct {
	Timestamp  time.Time
	SourceID   string            // an app's GUID
	InstanceID string            // its index: "0"
	Tags       map[string]string // "source_type": "APP/PROC/WEB", …; not to be changed after Append
	Kind       Kind
	Payload    []byte    // Log: the line without its end
	Err        bool      // Log: from stderr
	Metrics    []Metric  // what was measured: of a Counter and a Timer one
	Began      time.Time // Timer: when what it timed began; Timestamp is its end
}

// Kind is what an envelope holds, in Loggregator's words.
type Kind uint8

// The kinds.
const (
	Log Kind = iota
	Gauge
	Counter
	Timer
	event // nothing here makes any
)

// kinds are those that envelopes have.
var kinds = []Kind{Log, Gauge, Counter, Timer}

// shelf is which of a Cache's shelves holds the kind.
func (k Kind) shelf() int {
	return [...]int{logShelf, gaugeShelf, gaugeShelf, timerShelf, timerShelf}[k]
}

// Metric is a value by its name. Of a timer it is what it took, in nanoseconds;
// of a counter the total.
type Metric struct {
	Name, Unit string
	Value      float64
}

// named reports whether a metric of e has a name like that.
func (e *Envelope) named(name *regexp.Regexp) bool {
	return slices.ContainsFunc(e.Metrics, func(m Metric) bool { return name.MatchString(m.Name) })
}

// About what an Envelope and a Metric cost besides their payload; tags are
// shared by all envelopes of an instance.
const (
	envelopeOverhead = 200
	metricOverhead   = 40
)

func (e *Envelope) bytes() int64 {
	return int64(len(e.Payload)+len(e.Metrics)*metricOverhead) + envelopeOverhead
}
