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
	batchView struct {
		Batch []envelopeView `json:"batch"`
	}
	envelopeView struct {
		Timestamp  string            `json:"timestamp"`
		SourceID   string            `json:"source_id"`
		InstanceID string            `json:"instance_id"`
		Tags       map[string]string `json:"tags,omitempty"`
		Log        logView           `json:"log"`
	}
	logView struct {
		Payload []byte `json:"payload"`
		Type    string `json:"type"`
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
	for i, e := range envelopes {
		batch[i] = envelopeView{
			Timestamp: int64String(e.Timestamp.UnixNano()), SourceID: e.SourceID, InstanceID: e.InstanceID, Tags: e.Tags,
			Log: logView{Payload: e.Payload, Type: "OUT"},
		}
		if e.Err {
			batch[i].Log.Type = "ERR"
		}
	}
	return readAnswer{Envelopes: &batchView{Batch: batch}}
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
	_ = json.NewEncoder(w).Encode(v) // the client is gone: nobody to tell
}

const invalidArgument = 3 // gRPC's code

func writeInvalid(w http.ResponseWriter, err error) {
	writeJSON(w, http.StatusBadRequest, errorAnswer{Code: invalidArgument, Message: err.Error(), Details: []any{}})
}

func parseTime(name, value string) (time.Time, error) {
	ns, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("parsing field %q: %q is no 64-bit integer", name, value)
	}
	return time.Unix(0, ns), nil
}
