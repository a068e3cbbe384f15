package logstream

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"cupola/server/logcache"
)

func line(source, text string) logcache.Envelope {
	return logcache.Envelope{Timestamp: time.Unix(1, 0), SourceID: source, InstanceID: "0", Payload: []byte(text)}
}

func gauge(source string, names ...string) logcache.Envelope {
	e := logcache.Envelope{Timestamp: time.Unix(1, 0), SourceID: source, Kind: logcache.Gauge}
	for _, n := range names {
		e.Metrics = append(e.Metrics, logcache.Metric{Name: n, Unit: "bytes", Value: 1})
	}
	return e
}

// The selectors and the errors are the gateway's (loggregator-release:
// src/rlp-gateway/internal/web/selector_builder.go, json_error.go). A gauge must
// consist of the names (loggregator-api: egress.proto).
func TestSelection(t *testing.T) {
	counter := logcache.Envelope{SourceID: "a", Kind: logcache.Counter, Metrics: []logcache.Metric{{Name: "requests"}}}
	timer := logcache.Envelope{SourceID: "a", Kind: logcache.Timer, Metrics: []logcache.Metric{{Name: "http"}}}
	all := []logcache.Envelope{line("a", "x"), line("b", "x"), gauge("a", "cpu", "memory"), gauge("b", "cpu"), counter, timer}
	for _, c := range []struct{ query, want string }{
		{"log", "[0 1]"},
		{"log&source_id=a", "[0]"},
		{"log&source_id=a&source_id=b", "[0 1]"},
		{"log&timer&source_id=a", "[0 5]"},
		{"gauge", "[2 3]"},
		{"gauge.name=cpu", "[3]"},
		{"gauge.name=memory,cpu", "[2]"},
		{"gauge.name=cpu&gauge.name=cpu,memory", "[2 3]"},
		{"counter", "[4]"},
		{"counter.name=requests", "[4]"},
		{"counter.name=others", "[]"},
		{"counter.name=", "[4]"},
		{"event", "[]"},
		{"log&source_id=b&source_id=b&source_id=none", "[1]"},
		{"timer=1&shard_id=s", "[5]"},
		{"", "empty_query"},
		{"source_id=a", "missing_envelope_type"},
		{"logs", "missing_envelope_type"},
	} {
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		want, refused := parseSelection(query)
		var got string
		if refused != nil {
			got = refused.name
		} else {
			matched := []int{}
			for n := range all {
				if want.match(&all[n]) {
					matched = append(matched, n)
				}
			}
			got = fmt.Sprint(matched)
		}
		if got != c.want {
			t.Errorf("%q: got %s; want %s", c.query, got, c.want)
		}
	}
}

func count(s *subscription) (n int) {
	for batch := s.take(); len(batch) > 0; batch = s.take() {
		n += len(batch)
	}
	return n
}

// Members of a shard share what they want; others get all of it.
func TestShards(t *testing.T) {
	var h Hub
	logs := newSelection(selector{kind: logcache.Log})
	alone, one, two, other := h.subscribe(logs, "", ""), h.subscribe(logs, "s", ""), h.subscribe(logs, "s", ""), h.subscribe(newSelection(selector{kind: logcache.Gauge}), "s", "")
	for n := range 200 {
		h.Publish(line("a", fmt.Sprint(n)))
	}
	a, b := count(one), count(two)
	if got := count(alone); got != 200 || a+b != 200 || a < 50 || b < 50 || count(other) != 0 {
		t.Errorf("got %d alone, and %d and %d of a shard", got, a, b)
	}
	h.unsubscribe(one)
	h.Publish(line("a", "x"))
	if count(two) != 1 || count(one) != 0 {
		t.Error("who left is still given a share")
	}
	for _, s := range []*subscription{alone, two, other} {
		h.unsubscribe(s)
	}
	if h.Wanted() || len(h.shards) != 0 || len(h.alone) != 0 {
		t.Error("something is left of who unsubscribed")
	}
}

// With names the same metric always goes to the same member (go-pubsub).
func TestDeterministicShards(t *testing.T) {
	var h Hub
	gauges := newSelection(selector{kind: logcache.Gauge})
	first, second := h.subscribe(gauges, "s", "b"), h.subscribe(gauges, "s", "a")
	for range 20 {
		h.Publish(gauge("a", "cpu"))
	}
	if a, b := count(first), count(second); a+b != 20 || a != 0 && b != 0 {
		t.Errorf("one metric went %d and %d times", a, b)
	}
	for n := range 40 {
		h.Publish(gauge("a", fmt.Sprint(n)))
	}
	if a, b := count(first), count(second); a == 0 || b == 0 {
		t.Errorf("40 metrics are shared %d to %d", a, b)
	}
}

// A reader that takes nothing costs no more than its queue, and loses the newest.
func TestQueuesAreBounded(t *testing.T) {
	var h Hub
	s := h.subscribe(newSelection(selector{kind: logcache.Log}), "", "")
	for n := range queueSize + 10 {
		h.Publish(line("a", fmt.Sprint(n)))
	}
	if batch := s.take(); len(batch) != batchSize || string(batch[0].Payload) != "0" || h.Dropped() != 10 {
		t.Errorf("got %d envelopes, %d were dropped", len(batch), h.Dropped())
	}
	if got := count(s); got != queueSize-batchSize || s.bytes != 0 {
		t.Errorf("%d were left, and %d bytes after them", got, s.bytes)
	}
	big := logcache.Envelope{SourceID: "a", Payload: make([]byte, queueBytes/4)}
	for range 5 {
		h.Publish(big)
	}
	if got := count(s); got != 3 {
		t.Errorf("%d large lines were queued; want as many as fit into the bytes", got)
	}
}
