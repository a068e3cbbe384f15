package server

import (
	"maps"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/logcache"
	"cupola/server/metrics"
	"cupola/server/router"
)

// logLine takes a line of a container, or one that the cell says of it, into
// the log cache.
func (h *house) logLine(l lrp.LogLine) {
	if l.Target.GUID == "" {
		return
	}
	tags := maps.Clone(l.Target.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags["source_type"] = l.Target.Source
	h.log(logcache.Envelope{Timestamp: l.At, SourceID: l.Target.GUID, InstanceID: l.Target.Instance, Tags: tags, Payload: l.Text, Err: l.Err})
}

// note says in an app's log what the API did to it.
func (h *house) note(appGUID, text string) {
	h.log(logcache.Envelope{Timestamp: time.Now(), SourceID: appGUID, InstanceID: "0",
		Tags: map[string]string{"source_type": "API"}, Payload: []byte(text)})
}

// logAccess writes the router's line of a request into its app's log.
func (h *house) logAccess(e router.AccessEntry) {
	h.metrics.Requested(metrics.Request{Status: e.Status, Routed: e.AppGUID != "", Took: e.At.Sub(e.Began)})
	if e.AppGUID == "" {
		return
	}
	instance := e.Tags["instance_id"]
	if instance == "" {
		instance = "0"
	}
	h.log(logcache.Envelope{Timestamp: e.At, SourceID: e.AppGUID, InstanceID: instance,
		Tags: map[string]string{"source_type": "RTR"}, Payload: e.Line})
	h.logs.Append(h.timed(e, instance))
}
