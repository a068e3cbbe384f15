package server

import (
	"context"
	"time"

	"cupola/server/drain"
	"cupola/server/logcache"
)

// log keeps a line of an app, and sends it where the app's drains go.
func (h *daemon) log(e logcache.Envelope) {
	h.logs.Append(e)
	h.drains.Append(drain.Message{AppGUID: e.SourceID, Instance: e.InstanceID, Tags: e.Tags, At: e.Timestamp, Text: e.Payload, Err: e.Err})
}

// drainLogs keeps the drains current until ctx ends.
func (h *daemon) drainLogs(ctx context.Context) error { return h.drains.Run(ctx, h.store, h.Log) }

// reportDrain says in an app's log what became of a drain of its; what a drain
// could not take is not for the drain.
func (h *daemon) reportDrain(appGUID, text string) {
	h.logs.Append(logcache.Envelope{Timestamp: time.Now(), SourceID: appGUID, InstanceID: "0",
		Tags: map[string]string{"source_type": "LGR"}, Payload: []byte(text), Err: true})
}
