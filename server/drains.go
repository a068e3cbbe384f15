package server

import (
	"context"
	"time"

	"cupola/server/drain"
	"cupola/server/logcache"
)

// log keeps a line of an app, and sends it where the app's drains go.
func (d *daemon) log(e logcache.Envelope) {
	d.logs.Append(e)
	d.drains.Append(drain.Message{AppGUID: e.SourceID, Instance: e.InstanceID, Tags: e.Tags, At: e.Timestamp, Text: e.Payload, Err: e.Err})
}

// drainLogs keeps the drains current until ctx ends.
func (d *daemon) drainLogs(ctx context.Context) error { return d.drains.Run(ctx, d.store, d.Log) }

// reportDrain says in an app's log what became of a drain of its; what a drain
// could not take is not for the drain.
func (d *daemon) reportDrain(appGUID, text string) {
	d.logs.Append(logcache.Envelope{Timestamp: time.Now(), SourceID: appGUID, InstanceID: "0",
		Tags: map[string]string{"source_type": "LGR"}, Payload: []byte(text), Err: true})
}
