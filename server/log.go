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
func (d *daemon) logLine(l lrp.LogLine) {
	if l.Target.GUID == "" {
		return
	}
	tags := maps.Clone(l.Target.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags["source_type"] = l.Target.Source
	d.log(logcache.Envelope{Timestamp: l.At, SourceID: l.Target.GUID, InstanceID: l.Target.Instance, Tags: tags, Payload: l.Text, Err: l.Err})
}

// note says in an app's log what the API did to it.
func (d *daemon) note(appGUID, text string) {
	d.log(logcache.Envelope{Timestamp: time.Now(), SourceID: appGUID, InstanceID: "0",
		Tags: map[string]string{"source_type": "API"}, Payload: []byte(text)})
}

// logAccess writes the router's line of a request into its app's log.
func (d *daemon) logAccess(e router.AccessEntry) {
	d.metrics.Requested(metrics.Request{Status: e.Status, Routed: e.AppGUID != "", Took: e.At.Sub(e.Began)})
	if e.AppGUID == "" {
		return
	}
	instance := e.Tags["instance_id"]
	if instance == "" {
		instance = "0"
	}
	d.log(logcache.Envelope{Timestamp: e.At, SourceID: e.AppGUID, InstanceID: instance,
		Tags: map[string]string{"source_type": "RTR"}, Payload: e.Line})
	d.logs.Append(d.timed(e, instance))
}
