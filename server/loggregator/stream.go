package loggregator

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"cupola/runtime/egress"
	"cupola/runtime/lrp"
	"cupola/server/drain"
	"cupola/server/logcache"
	"cupola/server/logstream"
	"cupola/server/router"
	"cupola/store"
)

// Config says what a stream is made of.
type Config struct {
	Logs    string // the directory of log files
	Archive string // that of older lines, of ArchiveBytes at most; 0 keeps none
	Metrics string // that of the metrics' history
	Saved   string // the file that keeps the rest of the cache while no daemon runs
	Where   egress.Guard
	Store   *store.Store
	Log     *slog.Logger

	ArchiveBytes int64
	ArchiveDays  int
}

// archive is where old lines go.
func (c *Config) archive() logcache.ArchiveConfig {
	if c.ArchiveBytes == 0 {
		return logcache.ArchiveConfig{}
	}
	return logcache.ArchiveConfig{Dir: c.Archive, MaxBytes: c.ArchiveBytes, MaxAge: days(c.ArchiveDays)}
}

func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

// SetArchive changes how much of older lines is kept, and for how many days. Whether any are kept stays.
func (s *Stream) SetArchive(bytes int64, forDays int) {
	if bytes > 0 {
		s.Cache.SetArchiveLimits(bytes, days(forDays))
	}
}

// Stream takes the logs and metrics of apps.
type Stream struct {
	Config
	Cache  *logcache.Cache
	Hub    logstream.Hub // streams to clients
	drains *drain.Drains
	timers timerTags
	routed instanceTags
	served requests

	// Scrub returns the text of a line without what is secret in a service instance's; it is set before the first line.
	Scrub func(sourceID string, text []byte) []byte

	// InstanceTags returns the tags of an instance that runs; nil for none. It is set
	// before the first request.
	InstanceTags func(instanceGUID string) map[string]string
}

// New makes a stream, with what the one before it saved.
func New(c Config) *Stream {
	s := &Stream{Config: c, Cache: logcache.New(logcache.Config{Dir: c.Logs, Archive: c.archive(), Metrics: c.Metrics, Log: c.Log})}
	s.Cache.Load(c.Saved, c.Log)
	s.forgetUnscrubbed()
	s.drains = drain.New(drain.Config{Where: c.Where, Report: s.reportDrain})
	return s
}

// Drain keeps the drains current until ctx ends.
func (s *Stream) Drain(ctx context.Context) error { return s.drains.Run(ctx, s.Store, s.Log) }

// FailingDrains lists the drains that take no messages now.
func (s *Stream) FailingDrains() []drain.Failure { return s.drains.Failing() }

// Close saves what the cache has.
func (s *Stream) Close() error {
	s.recordRequests(time.Now())
	return errors.Join(s.Cache.Save(s.Saved), s.Cache.Close())
}

// keep keeps an envelope in the cache, and passes it on to streams.
func (s *Stream) keep(e logcache.Envelope) logcache.Envelope {
	e = s.Cache.Append(e)
	s.Hub.Publish(e)
	return e
}

// take keeps a line of an app, and sends it where the app's drains go.
func (s *Stream) take(e logcache.Envelope) {
	e = s.keep(e)
	s.drains.Append(drain.Message{AppGUID: e.SourceID, Instance: e.InstanceID, Tags: e.Tags, At: e.Timestamp, Text: e.Payload, Err: e.Err})
}

// Line takes a line of a container, or one that the cell says of it.
func (s *Stream) Line(l lrp.LogLine) {
	if l.Target.GUID == "" {
		return
	}
	tags := l.Target.Tags
	switch {
	case tags == nil: // of the platform, not of a container
		tags = s.sourceTags(fromCell, l.Target.GUID)
		tags[tagSource] = l.Target.Source
	case tags[tagOrigin] == "" || tags[tagSource] != l.Target.Source:
		tags = fromCell.tags()
		maps.Copy(tags, l.Target.Tags)
		tags[tagSource] = l.Target.Source
	}
	text := l.Text
	if s.Scrub != nil {
		text = s.Scrub(l.Target.GUID, text)
	}
	s.take(logcache.Envelope{Timestamp: l.At, SourceID: l.Target.GUID, InstanceID: l.Target.Instance, Tags: tags, Payload: text, Err: l.Err})
}

// API says in an app's log what the API did to it.
func (s *Stream) API(appGUID, text string) {
	s.take(said(s.appTags(fromController, appGUID), appGUID, text))
}

// Router says in an app's log what became of its routes.
func (s *Stream) Router(appGUID, text string) {
	s.take(said(s.appTags(fromRouter, appGUID), appGUID, text))
}

// said is what a part of the platform says of an app now.
func said(tags map[string]string, appGUID, text string) logcache.Envelope {
	return logcache.Envelope{Timestamp: time.Now(), SourceID: appGUID, InstanceID: "0", Tags: tags, Payload: []byte(text)}
}

// Access writes the router's line of a request into its app's log. The line's
// instance is the router's; that of the app is a tag (gorouter:
// accesslog/dropsonde_logsender.go).
func (s *Stream) Access(e router.AccessEntry) {
	if e.AppGUID == "" {
		return
	}
	s.take(logcache.Envelope{Timestamp: e.At, SourceID: e.AppGUID, InstanceID: "0", Tags: s.routed.of(e.InstanceGUID, s.instanceTags(e.InstanceGUID)), Payload: e.Line})
	timer := s.timed(e)
	s.Cache.Append(timer)
	if s.Cache.History != nil {
		s.served.count(&timer)
	}
	if s.Hub.Wanted() {
		s.Hub.Publish(s.timedFully(e))
	}
}

// instanceTags are the tags of an instance that runs; nil for none.
func (s *Stream) instanceTags(guid string) map[string]string {
	if guid == "" || s.InstanceTags == nil {
		return nil
	}
	return s.InstanceTags(guid)
}

// reportDrain writes to an app's log what happened to its drain. The drain does not
// get that line.
func (s *Stream) reportDrain(appGUID, text string) {
	e := said(map[string]string{tagSource: "LGR"}, appGUID, text)
	e.Err = true
	s.keep(e)
}
