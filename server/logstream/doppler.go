package logstream

import (
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/pattern"
	"cupola/server/logcache"
)

// recentLimit is how many lines of an app doppler kept, and how many it answers
// with at most.
const recentLimit = 100

// usageAge is how old the last measurement of an instance that runs may be.
const usageAge = 40 * time.Second

var guidPattern = pattern.Lazy(`^[[:xdigit:]]{8}-[[:xdigit:]]{4}-[[:xdigit:]]{4}-[[:xdigit:]]{4}-[[:xdigit:]]{12}$`)

// ofApp lets those in who see the app (loggregator-release:
// src/trafficcontroller/internal/proxy/log_access_middleware.go). Others get their
// answer, and ok is false.
func (g *Gateway) ofApp(w http.ResponseWriter, r *http.Request) (reader Reader, c claim, ok bool) {
	guid := r.PathValue("guid")
	if !guidPattern().MatchString(guid) {
		w.WriteHeader(http.StatusUnauthorized)
		return reader, c, false
	}
	reader, err := g.Authorize(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
		return reader, c, false
	}
	c = claim{sources: []string{guid}}
	ok, err = g.may(r.Context(), reader, c)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	}
	return reader, c, ok && err == nil
}

// stream is the websocket /apps/{guid}/stream: all that an app says and uses.
func (g *Gateway) stream(w http.ResponseWriter, r *http.Request) {
	reader, c, ok := g.ofApp(w, r)
	if !ok {
		return
	}
	var want []selector
	for _, k := range everything {
		want = append(want, selector{source: c.sources[0], kind: k})
	}
	g.serveWebsocket(w, r, reader, c, newSelection(want...), "")
}

// everything are the kinds of envelopes that dropsonde has.
var everything = []logcache.Kind{logcache.Log, logcache.Gauge, logcache.Counter, logcache.Timer}

// firehose is the websocket /firehose/{id}: all of all apps, which the clients with
// the same ID share (loggregator-release:
// src/trafficcontroller/internal/proxy/firehose_handler.go, admin_access_middleware.go).
func (g *Gateway) firehose(w http.ResponseWriter, r *http.Request) {
	c := claim{scopes: []string{scopeFirehose}}
	reader, err := g.Authorize(r)
	var ok bool
	if err == nil {
		ok, err = g.may(r.Context(), reader, c)
	}
	if err != nil || !ok {
		reason := "invalid authorization"
		if r.Header.Get("Authorization") == "" {
			reason = "authorization not provided"
		}
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte("You are not authorized. " + reason)) // the client may be gone
		return
	}
	kinds := everything
	switch r.URL.Query().Get("filter-type") {
	case "logs":
		kinds = everything[:1]
	case "metrics":
		kinds = everything[1:]
	}
	var want []selector
	for _, k := range kinds {
		want = append(want, selector{kind: k})
	}
	g.serveWebsocket(w, r, reader, c, newSelection(want...), shardOf("v1", reader, r.PathValue("id")))
}

// recentLogs is /apps/{guid}/recentlogs: the last lines of an app, as `cf logs
// --recent` of older CLIs reads them.
func (g *Gateway) recentLogs(w http.ResponseWriter, r *http.Request) {
	_, c, ok := g.ofApp(w, r)
	if !ok {
		return
	}
	limit := recentLimit
	if n, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && n >= 0 {
		limit = min(n, recentLimit)
	}
	var lines []logcache.Envelope
	if limit > 0 {
		lines = g.newest(c.sources[0], limit)
	}
	writeParts(w, lines)
}

// containerMetrics is /apps/{guid}/containermetrics: what each instance used last.
func (g *Gateway) containerMetrics(w http.ResponseWriter, r *http.Request) {
	_, c, ok := g.ofApp(w, r)
	if !ok {
		return
	}
	newest := map[string]logcache.Envelope{}
	for _, e := range g.Cache.Read(logcache.Query{SourceID: c.sources[0], Kinds: []logcache.Kind{logcache.Gauge}, Start: time.Now().Add(-usageAge)}) {
		if _, ok := containerMetric(&e); ok {
			newest[e.InstanceID] = e
		}
	}
	var all []logcache.Envelope
	for _, e := range newest {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b logcache.Envelope) int { return strings.Compare(a.InstanceID, b.InstanceID) })
	writeParts(w, all)
}

// writeParts answers with envelopes as noaa reads them, each a part.
func writeParts(w http.ResponseWriter, all []logcache.Envelope) {
	parts := multipart.NewWriter(w)
	w.Header().Set("Content-Type", "multipart/x-protobuf; boundary="+parts.Boundary())
	for i := range all {
		for _, envelope := range dropsonde(&all[i]) {
			part, err := parts.CreatePart(nil)
			if err == nil {
				_, err = part.Write(envelope)
			}
			if err != nil {
				return // the client is gone
			}
		}
	}
	_ = parts.Close() // likewise
}
