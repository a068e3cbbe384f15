package logstream

import (
	"strconv"

	"cupola/server/logcache"
)

// The JSON of the gateway is protobuf's with all fields, also those without a
// value (loggregator-release: src/rlp-gateway/internal/web/read.go).
type (
	batchView struct {
		Batch []envelopeView `json:"batch"`
	}
	envelopeView struct {
		Timestamp      string            `json:"timestamp"`
		SourceID       string            `json:"source_id"`
		InstanceID     string            `json:"instance_id"`
		DeprecatedTags struct{}          `json:"deprecated_tags"`
		Tags           map[string]string `json:"tags"`
		Log            *logView          `json:"log,omitempty"`
		Counter        *counterView      `json:"counter,omitempty"`
		Gauge          *gaugeView        `json:"gauge,omitempty"`
		Timer          *timerView        `json:"timer,omitempty"`
	}
	logView struct {
		Payload []byte `json:"payload"`
		Type    string `json:"type"`
	}
	counterView struct {
		Name  string `json:"name"`
		Delta string `json:"delta"`
		Total string `json:"total"`
	}
	gaugeView struct {
		Metrics map[string]valueView `json:"metrics"`
	}
	valueView struct {
		Unit  string  `json:"unit"`
		Value float64 `json:"value"`
	}
	timerView struct {
		Name  string `json:"name"`
		Start string `json:"start"`
		Stop  string `json:"stop"`
	}
)

func viewBatch(batch []logcache.Envelope) batchView {
	v := batchView{Batch: make([]envelopeView, len(batch))}
	for i := range batch {
		v.Batch[i] = viewEnvelope(&batch[i])
	}
	return v
}

func viewEnvelope(e *logcache.Envelope) envelopeView {
	v := envelopeView{Timestamp: text(e.Timestamp.UnixNano()), SourceID: e.SourceID, InstanceID: e.InstanceID, Tags: e.Tags}
	if v.Tags == nil {
		v.Tags = map[string]string{}
	}
	switch e.Kind {
	case logcache.Log:
		v.Log = &logView{Payload: e.Payload, Type: "OUT"}
		if e.Payload == nil {
			v.Log.Payload = []byte{}
		}
		if e.Err {
			v.Log.Type = "ERR"
		}
	case logcache.Gauge:
		v.Gauge = &gaugeView{Metrics: map[string]valueView{}}
		for _, m := range e.Metrics {
			v.Gauge.Metrics[m.Name] = valueView{m.Unit, m.Value}
		}
	case logcache.Counter:
		for _, m := range e.Metrics {
			v.Counter = &counterView{Name: m.Name, Delta: "0", Total: text(int64(m.Value))}
		}
	case logcache.Timer:
		for _, m := range e.Metrics {
			v.Timer = &timerView{Name: m.Name, Start: text(e.Began.UnixNano()), Stop: text(e.Began.UnixNano() + int64(m.Value))}
		}
	}
	return v
}

func text(n int64) string { return strconv.FormatInt(n, 10) }
