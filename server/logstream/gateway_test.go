package logstream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cupola/server/logcache"
	"cupola/store"
	"cupola/store/cf"
)

const appGUID = "11111111-2222-4333-8444-555555555555"

// station is a gateway with one app, which the user joe sees as long as there is
// one, and a nozzle that reads everything.
type station struct {
	*httptest.Server
	hub   *Hub
	cache *logcache.Cache
	store *store.Store
	stop  context.CancelFunc
}

func newStation(t *testing.T, c Config) *station {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		if err := store.Orgs.Insert(tx, &cf.Org{Resource: cf.Resource{GUID: "o"}, Name: "o"}); err != nil {
			return err
		}
		if err := store.Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: "s"}, Name: "s", OrgGUID: "o"}); err != nil {
			return err
		}
		return store.Apps.Insert(tx, &cf.App{Resource: cf.Resource{GUID: appGUID}, Name: "shop", SpaceGUID: "s", State: cf.Stopped})
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, cancel := context.WithCancel(t.Context())
	log := slog.New(slog.DiscardHandler)
	st := &station{hub: &Hub{}, cache: logcache.New(logcache.Config{Log: log}), store: s, stop: cancel}
	c.Hub, c.Cache, c.Store, c.Authorize, c.Stop, c.Log = st.hub, st.cache, s, authorize, stop, log
	st.Server = httptest.NewServer(New(c))
	t.Cleanup(st.Close)
	t.Cleanup(cancel) // first: the streams end
	return st
}

func authorize(r *http.Request) (Reader, error) {
	switch who := strings.TrimPrefix(r.Header.Get("Authorization"), "bearer "); who {
	case "joe":
		return Reader{GUID: who, May: func(tx *store.Tx, _, sources []string) (bool, error) {
			for _, source := range sources {
				if _, err := store.Apps.Get(tx, source); store.IsNotFound(err) {
					return false, nil
				} else if err != nil {
					return false, err
				}
			}
			return len(sources) > 0, nil
		}}, nil
	case "nozzle":
		return Reader{GUID: who, May: func(_ *store.Tx, scopes, _ []string) (bool, error) { return len(scopes) > 0, nil }}, nil
	}
	return Reader{}, errors.New("no token")
}

func (s *station) get(t *testing.T, who, path string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if who != "" {
		req.Header.Set("Authorization", "bearer "+who)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// listening waits until there are as many streams.
func (s *station) listening(t *testing.T, n int) {
	t.Helper()
	for s.hub.Listening() != n {
		if t.Context().Err() != nil {
			t.Fatalf("there are %d streams; want %d", s.hub.Listening(), n)
		}
		time.Sleep(time.Millisecond)
	}
}

// The errors are the gateway's, with the header and body of http.Error
// (loggregator-release: src/rlp-gateway/internal/web/json_error.go).
func TestReadRefuses(t *testing.T) {
	s := newStation(t, Config{})
	const notFound = `{"message":"resource not found","error":"not_found"}`
	for _, c := range []struct {
		name, who, query string
		status           int
		body             string
	}{
		{"no token", "", "?log", 404, notFound},
		{"a bad token", "mallory", "?log&source_id=" + appGUID, 404, notFound},
		{"no source", "joe", "?log", 404, notFound},
		{"a source that joe does not see", "joe", "?log&source_id=other", 404, notFound},
		{"one of two that joe sees", "joe", "?log&source_id=other&source_id=" + appGUID, 404, notFound},
		{"no query", "nozzle", "", 400, `{"message":"query cannot be empty","error":"empty_query"}`},
		{"no type", "joe", "?source_id=" + appGUID, 400, `{"message":"query must provide at least one envelope type","error":"missing_envelope_type"}`},
	} {
		res := s.get(t, c.who, "/v2/read"+c.query)
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != c.status || string(body) != c.body+"\n\n" || res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: got %d %q; want %d %s", c.name, res.StatusCode, body, c.status, c.body)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v2/read?log", nil)
	req.Header.Set("Authorization", "bearer nozzle")
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.StatusCode != 405 || string(body) != `{"message":"method not allowed","error":"method_not_allowed"}`+"\n\n" {
		t.Errorf("POST: got %d %q", res.StatusCode, body)
	}
	if s.hub.Listening() != 0 {
		t.Error("a refused request listens")
	}
}

// next reads an event: its lines.
func next(t *testing.T, in *bufio.Reader) (lines []string) {
	t.Helper()
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			return append(lines, err.Error())
		}
		if text == "\n" {
			return lines
		}
		lines = append(lines, strings.TrimSuffix(text, "\n"))
	}
}

// TestReadStreams: what a batch looks like is in loggregator-release:
// src/rlp-gateway/internal/web/read_test.go.
func TestReadStreams(t *testing.T) {
	s := newStation(t, Config{})
	res := s.get(t, "joe", "/v2/read?log&gauge&timer&counter&source_id="+appGUID)
	if h := res.Header; res.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-cache" || h.Get("Connection") != "keep-alive" {
		t.Fatalf("got %d %v", res.StatusCode, h)
	}
	s.listening(t, 1)
	in := bufio.NewReader(res.Body)
	tags := map[string]string{"origin": "rep"}
	at, began := time.Unix(0, 42), time.Unix(0, 40)
	for _, c := range []struct {
		e    logcache.Envelope
		want string
	}{
		{logcache.Envelope{Payload: []byte("hi"), Tags: tags, InstanceID: "3"}, `"instance_id":"3","deprecated_tags":{},"tags":{"origin":"rep"},"log":{"payload":"aGk=","type":"OUT"}`},
		{logcache.Envelope{Err: true}, `"instance_id":"","deprecated_tags":{},"tags":{},"log":{"payload":"","type":"ERR"}`},
		{logcache.Envelope{Kind: logcache.Gauge, Metrics: []logcache.Metric{{Name: "cpu", Unit: "percentage", Value: 0}}},
			`"instance_id":"","deprecated_tags":{},"tags":{},"gauge":{"metrics":{"cpu":{"unit":"percentage","value":0}}}`},
		{logcache.Envelope{Kind: logcache.Counter, Metrics: []logcache.Metric{{Name: "n", Value: 7}}}, `"instance_id":"","deprecated_tags":{},"tags":{},"counter":{"name":"n","delta":"0","total":"7"}`},
		{logcache.Envelope{Kind: logcache.Timer, Began: began, Metrics: []logcache.Metric{{Name: "http", Value: 2}}},
			`"instance_id":"","deprecated_tags":{},"tags":{},"timer":{"name":"http","start":"40","stop":"42"}`},
	} {
		c.e.Timestamp, c.e.SourceID = at, "other"
		s.hub.Publish(c.e) // of an app that was not asked for
		c.e.SourceID = appGUID
		s.hub.Publish(c.e)
		want := `data: {"batch":[{"timestamp":"42","source_id":"` + appGUID + `",` + c.want + `}]}`
		if got := next(t, in); len(got) != 1 || got[0] != want {
			t.Errorf("got %q; want %s", got, want)
		}
	}
}

// A stream ends with the app, and with what else its reader lost the right by; with
// the daemon; and when the client goes.
func TestStreamsEnd(t *testing.T) {
	s := newStation(t, Config{})
	in := bufio.NewReader(s.get(t, "joe", "/v2/read?log&source_id="+appGUID).Body)
	nozzle := bufio.NewReader(s.get(t, "nozzle", "/v2/read?log").Body)
	gone := s.get(t, "nozzle", "/v2/read?log")
	s.listening(t, 3)
	gone.Body.Close()
	s.listening(t, 2)
	err := s.store.Write(t.Context(), func(tx *store.Tx) error { return store.Apps.Delete(tx, appGUID) })
	if err != nil {
		t.Fatal(err)
	}
	if got := next(t, in); len(got) != 1 || got[0] != io.EOF.Error() {
		t.Errorf("joe got %q; want the end", got)
	}
	s.listening(t, 1)
	s.stop()
	if got := next(t, nozzle); len(got) != 2 || got[0] != "event: closing" {
		t.Errorf("the nozzle got %q; want to hear that the stream closes", got)
	}
	s.listening(t, 0)
}

func TestHeartbeatsAndTheEndOfAStream(t *testing.T) {
	s := newStation(t, Config{Heartbeat: time.Millisecond, Life: 50 * time.Millisecond})
	in := bufio.NewReader(s.get(t, "nozzle", "/v2/read?log").Body)
	if got := next(t, in); len(got) != 2 || got[0] != "event: heartbeat" || !strings.HasPrefix(got[1], "data: 1") {
		t.Errorf("got %q", got)
	}
	for got := next(t, in); ; got = next(t, in) {
		if got[0] == "event: heartbeat" {
			continue
		}
		if len(got) != 2 || got[0] != "event: closing" || got[1] != "data: closing due to stream timeout" {
			t.Errorf("got %q", got)
		}
		break
	}
}

// One user may have many streams and leaves room for others; a stream that ends
// makes room.
func TestStreamsAreShared(t *testing.T) {
	s := newStation(t, Config{})
	var open []*http.Response
	for {
		res := s.get(t, "nozzle", "/v2/read?log")
		if res.StatusCode != 200 {
			body, _ := io.ReadAll(res.Body)
			if string(body) != `{"message":"streaming is temporarily unavailable","error":"streaming_unavailable"}`+"\n\n" || res.StatusCode != 503 {
				t.Errorf("got %d %q", res.StatusCode, body)
			}
			break
		}
		open = append(open, res)
	}
	if len(open) != maxStreams/2 {
		t.Errorf("one reader got %d of %d streams", len(open), maxStreams)
	}
	if res := s.get(t, "joe", "/v2/read?log&source_id="+appGUID); res.StatusCode != 200 {
		t.Errorf("another got %d", res.StatusCode)
	}
	open[0].Body.Close()
	s.listening(t, len(open))
	if res := s.get(t, "nozzle", "/v2/read?log"); res.StatusCode != 200 {
		t.Errorf("after one ended, got %d", res.StatusCode)
	}
}

// Two instances of a nozzle share what they read; a stranger with the same shard
// takes nothing from them.
func TestAShardIsOneReaders(t *testing.T) {
	s := newStation(t, Config{})
	query := "/v2/read?log&shard_id=n&source_id=" + appGUID
	mine, other := bufio.NewReader(s.get(t, "nozzle", query).Body), bufio.NewReader(s.get(t, "joe", query).Body)
	s.listening(t, 2)
	s.hub.Publish(line(appGUID, "x"))
	for _, in := range []*bufio.Reader{mine, other} {
		var v batchView
		if got := next(t, in); len(got) != 1 || json.Unmarshal([]byte(strings.TrimPrefix(got[0], "data: ")), &v) != nil || len(v.Batch) != 1 {
			t.Errorf("got %q; want the line", got)
		}
	}
}
