package logcache

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// The JSON of the API is that of protobuf with the fields' own names: 64-bit
// numbers are strings, bytes are base64. The CLI refuses any field it does
// not know.
type (
	readAnswer struct {
		Envelopes *batchView `json:"envelopes,omitempty"`
	}
	searchAnswer struct {
		readAnswer
		NextEndTime string `json:"next_end_time,omitempty"`
	}
	batchView struct {
		Batch []envelopeView `json:"batch"`
	}
	envelopeView struct {
		Timestamp  string            `json:"timestamp"`
		SourceID   string            `json:"source_id"`
		InstanceID string            `json:"instance_id"`
		Tags       map[string]string `json:"tags,omitempty"`
		Log        *logView          `json:"log,omitempty"`
		Gauge      *gaugeView        `json:"gauge,omitempty"`
		Counter    *counterView      `json:"counter,omitempty"`
		Timer      *timerView        `json:"timer,omitempty"`
	}
	logView struct {
		Payload []byte `json:"payload"`
		Type    string `json:"type"`
	}
	gaugeView struct {
		Metrics map[string]valueView `json:"metrics"`
	}
	valueView struct {
		Unit  string  `json:"unit"`
		Value float64 `json:"value"`
	}
	counterView struct {
		Name  string `json:"name"`
		Delta string `json:"delta"`
		Total string `json:"total"`
	}
	timerView struct {
		Name  string `json:"name"`
		Start string `json:"start"`
		Stop  string `json:"stop"`
	}
	metaAnswer struct {
		Meta map[string]metaView `json:"meta"`
	}
	metaView struct {
		Count           string `json:"count"`
		Expired         string `json:"expired"`
		OldestTimestamp string `json:"oldest_timestamp"`
		NewestTimestamp string `json:"newest_timestamp"`
	}
	infoAnswer struct {
		Version  string `json:"version"`
		VMUptime string `json:"vm_uptime"`
	}
	// errorAnswer is gRPC's status.
	errorAnswer struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Details []any  `json:"details"`
	}
)

func viewRead(envelopes []Envelope) readAnswer {
	batch := make([]envelopeView, len(envelopes))
	for i := range envelopes {
		batch[i] = viewEnvelope(&envelopes[i])
	}
	return readAnswer{Envelopes: &batchView{Batch: batch}}
}

func viewEnvelope(e *Envelope) envelopeView {
	v := envelopeView{Timestamp: int64String(e.Timestamp.UnixNano()), SourceID: e.SourceID, InstanceID: e.InstanceID, Tags: e.Tags}
	switch e.Kind {
	case Log:
		v.Log = &logView{Payload: e.Payload, Type: "OUT"}
		if e.Err {
			v.Log.Type = "ERR"
		}
	case Gauge:
		v.Gauge = &gaugeView{Metrics: map[string]valueView{}}
		for _, m := range e.Metrics {
			v.Gauge.Metrics[m.Name] = valueView{m.Unit, m.Value}
		}
	case Counter:
		for _, m := range e.Metrics {
			v.Counter = &counterView{Name: m.Name, Delta: "0", Total: int64String(int64(m.Value))}
		}
	case Timer:
		for _, m := range e.Metrics {
			v.Timer = &timerView{Name: m.Name, Start: int64String(e.Began.UnixNano()), Stop: int64String(e.Began.UnixNano() + int64(m.Value))}
		}
	}
	return v
}

func viewMeta(m Meta) metaView {
	return metaView{
		Count: int64String(m.Count), Expired: int64String(m.Expired),
		OldestTimestamp: int64String(m.Oldest.UnixNano()), NewestTimestamp: int64String(m.Newest.UnixNano()),
	}
}

func int64String(n int64) string { return strconv.FormatInt(n, 10) }

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// gRPC's codes.
const (
	invalidArgument = 3
	notFound        = 5
)

func writeInvalid(w http.ResponseWriter, err error) {
	writeJSON(w, http.StatusBadRequest, errorAnswer{Code: invalidArgument, Message: err.Error(), Details: []any{}})
}

func parseTime(name, value string) (time.Time, error) {
	ns, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("parsing field %q: %q is not a 64-bit integer", name, value)
	}
	return time.Unix(0, ns), nil
}
