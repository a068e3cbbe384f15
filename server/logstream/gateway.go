package logstream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"cupola/runtime/fault"
	"cupola/server/bulkhead"
	"cupola/server/logcache"
	"cupola/store"
)

// maxStreams bounds the streams of all users; one user may have half of those that
// others leave. With full queues they take 128 MiB.
const maxStreams = 64

// The times of a stream: the gateway's (loggregator-release: src/rlp-gateway), and
// for writing the traffic controller's.
const (
	heartbeat = 15 * time.Second
	life      = 14 * time.Minute
	writeTime = 6 * time.Second
)

// The scopes that let read everything.
const (
	scopeFirehose = "doppler.firehose"
	scopeAdmin    = "logs.admin"
)

// Reader is the user or client that a request's token speaks for.
type Reader struct {
	GUID string
	// May reports whether the reader may read now: because of one of the scopes, or
	// because it sees all of the sources, of which there is at least one.
	May func(tx *store.Tx, scopes, sources []string) (bool, error)
}

// Config is what a Gateway is made of.
type Config struct {
	Hub   *Hub
	Cache *logcache.Cache // for what was said before
	Store *store.Store
	// Authorize returns whom a request's token speaks for; it returns an error where
	// it has no good one.
	Authorize func(*http.Request) (Reader, error)
	Stop      context.Context // all streams end with it
	Log       *slog.Logger

	Heartbeat, Life time.Duration // of /v2/read; 0: the gateway's 15 s and 14 min
}

// Gateway serves streams.
type Gateway struct {
	Config
	slots *bulkhead.Share[string] // streams, by user
	mux   *http.ServeMux
}

// Paths are what a Gateway serves.
var Paths = []string{"/v2/read", "/apps/{guid}/stream", "/apps/{guid}/recentlogs", "/apps/{guid}/containermetrics", "/firehose/{id}"}

// New makes a gateway.
func New(c Config) *Gateway {
	if c.Heartbeat == 0 {
		c.Heartbeat = heartbeat
	}
	if c.Life == 0 {
		c.Life = life
	}
	g := &Gateway{Config: c, slots: bulkhead.NewShare[string](maxStreams, 1), mux: http.NewServeMux()}
	for n, h := range []http.HandlerFunc{g.read, g.stream, g.recentLogs, g.containerMetrics, g.firehose} {
		g.mux.HandleFunc(Paths[n], h)
	}
	return g
}

// ServeHTTP answers requests to Paths.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// claim is why a reader may read: one of the scopes, or that it sees the sources.
type claim struct{ scopes, sources []string }

func (g *Gateway) may(ctx context.Context, reader Reader, c claim) (ok bool, err error) {
	err = g.Store.Read(ctx, func(tx *store.Tx) error {
		ok, err = reader.May(tx, c.scopes, c.sources)
		return err
	})
	return ok, err
}

// follow subscribes for as long as the reader may read, until the context ends or
// the daemon stops. The reader may not have too many streams: then ok is false. The
// caller calls end.
func (g *Gateway) follow(ctx context.Context, reader Reader, c claim, want selection, shard, name string) (s *subscription, _ context.Context, end func(), ok bool) {
	if !g.slots.Take(reader.GUID) {
		return nil, nil, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(g.Stop, cancel)
	watching := make(chan struct{})
	fault.Go("log stream", func() { g.watch(ctx, reader, c, cancel, watching) })
	s = g.Hub.subscribe(want, shard, name)
	return s, ctx, func() {
		g.Hub.unsubscribe(s)
		unlink()
		cancel()
		<-watching
		g.slots.Put(reader.GUID)
	}, true
}

// watch calls lost once the reader may no longer read: after a logout, without its
// role or its app.
func (g *Gateway) watch(ctx context.Context, reader Reader, c claim, lost func(), done chan struct{}) {
	defer close(done)
	_ = store.Derive(ctx, g.Store, store.Derivation[bool]{Name: "log stream", Log: g.Log, // its only error is ctx's
		Read: func(tx *store.Tx) (bool, error) { return reader.May(tx, c.scopes, c.sources) },
		Use: store.Always(func(_ context.Context, ok bool) error {
			if !ok {
				lost()
			}
			return nil
		})})
}

// read is GET /v2/read. A source that the reader does not see looks like one that
// does not exist (loggregator-release: src/rlp-gateway/internal/web/cf_auth_middleware.go).
func (g *Gateway) read(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	c := claim{scopes: []string{scopeFirehose, scopeAdmin}, sources: query["source_id"]}
	reader, err := g.Authorize(r)
	var ok bool
	if err == nil {
		ok, err = g.may(r.Context(), reader, c)
	}
	if err != nil || !ok {
		errNotFound.write(w)
		return
	}
	if r.Method != http.MethodGet {
		errMethodNotAllowed.write(w)
		return
	}
	want, refused := parseSelection(query)
	if refused != nil {
		refused.write(w)
		return
	}
	s, ctx, end, ok := g.follow(r.Context(), reader, c, want, shardOf("v2", reader, query.Get("shard_id")), query.Get("deterministic_name"))
	if !ok {
		errStreamingUnavailable.write(w)
		return
	}
	defer end()
	g.send(ctx, w, s)
}

// shardOf names a shard. Readers share one only with themselves: in Loggregator
// a stranger with the same shard_id takes half of what another reads.
func shardOf(protocol string, reader Reader, id string) string {
	if id == "" {
		return ""
	}
	return protocol + "/" + reader.GUID + "/" + id
}

// send writes what is subscribed as server-sent events until ctx ends.
func (g *Gateway) send(ctx context.Context, w http.ResponseWriter, s *subscription) {
	out := &events{w: w, control: http.NewResponseController(w)}
	defer out.release()
	for name, value := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Connection": "keep-alive"} {
		w.Header().Set(name, value)
	}
	w.WriteHeader(http.StatusOK)
	beat, end := time.NewTimer(g.Heartbeat), time.NewTimer(g.Life)
	defer beat.Stop()
	defer end.Stop()
	err := out.flush()
	for err == nil {
		select {
		case <-s.signal:
			if batch := s.take(); len(batch) > 0 {
				err = out.batch(viewBatch(batch))
				beat.Reset(g.Heartbeat)
			}
		case at := <-beat.C:
			err = out.write("event: heartbeat\ndata: %d\n\n", at.Unix())
			beat.Reset(g.Heartbeat)
		case <-end.C:
			_ = out.write("event: closing\ndata: closing due to stream timeout\n\n") // the end, either way
			return
		case <-ctx.Done():
			if g.Stop.Err() != nil {
				_ = out.write("event: closing\ndata: closing because the daemon stops\n\n") // likewise
			}
			return
		}
	}
}

// events writes server-sent events to a client, which must take each in time.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (e *events) batch(v batchView) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.write("data: %s\n\n", data)
}

func (e *events) write(format string, args ...any) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTime)) // servers that know none are those of tests
	if _, err := fmt.Fprintf(e.w, format, args...); err != nil {
		return err
	}
	return e.flush()
}

func (e *events) flush() error { return e.control.Flush() }

// release lets the connection serve other requests.
func (e *events) release() { _ = e.control.SetWriteDeadline(time.Time{}) } // likewise

// write answers with an error in the gateway's form.
func (f *refusal) write(w http.ResponseWriter) {
	body, err := json.Marshal(struct {
		Message string `json:"message"`
		Name    string `json:"error"`
	}{f.message, f.name})
	if err != nil {
		body = nil
	}
	http.Error(w, string(body)+"\n", f.status)
}

// newest are the last log lines of an app, the oldest first.
func (g *Gateway) newest(appGUID string, limit int) []logcache.Envelope {
	lines := g.Cache.Read(logcache.Query{SourceID: appGUID, Limit: limit, Descending: true})
	slices.Reverse(lines)
	return lines
}
