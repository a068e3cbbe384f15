package logstream

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"cupola/server/logcache"
)

// decoded is a protobuf message as text: its fields by number. Those whose numbers
// are in inner are messages.
func decoded(t *testing.T, b []byte, inner ...protowire.Number) map[protowire.Number]string {
	t.Helper()
	all := map[protowire.Number]string{}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		var text string
		switch kind {
		case protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			text = fmt.Sprint(v)
		case protowire.Fixed64Type:
			var v uint64
			v, n = protowire.ConsumeFixed64(b)
			text = fmt.Sprint(math.Float64frombits(v))
		default:
			var v []byte
			v, n = protowire.ConsumeBytes(b)
			text = string(v)
			switch {
			case field == fieldHTTP && slices.Contains(inner, field):
				text = fmt.Sprint(decoded(t, v, 3, 12)) // its UUIDs
			case slices.Contains(inner, field):
				text = fmt.Sprint(decoded(t, v))
			}
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		if old, ok := all[field]; ok {
			text = old + " " + text
		}
		all[field] = text
	}
	return all
}

// The fields are dropsonde's (dropsonde-protocol: events/*.proto), the conversion is
// go-loggregator's (conversion/tov1.go).
func TestDropsonde(t *testing.T) {
	tags := map[string]string{"origin": "rep", "deployment": "cf", "job": "diego-cell", "index": "c1", "ip": "127.0.0.1"}
	with := func(name, value string) map[string]string {
		all := map[string]string{name: value}
		for n, v := range tags {
			all[n] = v
		}
		return all
	}
	at := time.Unix(0, 42)
	head := func(event string, field protowire.Number, inner string, tag string) map[protowire.Number]string {
		return map[protowire.Number]string{1: "rep", 2: event, 6: "42", field: inner, 13: "cf", 14: "diego-cell", 15: "c1", 16: "127.0.0.1", 17: tag}
	}
	for _, c := range []struct {
		name  string
		e     logcache.Envelope
		field protowire.Number
		want  []map[protowire.Number]string
	}{
		{"a line", logcache.Envelope{Payload: []byte("hi"), Tags: with("source_type", "APP/PROC/WEB"), InstanceID: "3"}, 8,
			[]map[protowire.Number]string{head("5", 8, "map[1:hi 2:1 3:42 4:"+appGUID+" 5:APP/PROC/WEB 6:3]", "map[1:source_id 2:"+appGUID+"]")}},
		{"a line of stderr", logcache.Envelope{Payload: []byte("no"), Err: true, Tags: with("__v1_type", "LogMessage"), InstanceID: "0"}, 8,
			[]map[protowire.Number]string{head("5", 8, "map[1:no 2:2 3:42 4:"+appGUID+" 5: 6:0]", "map[1:source_id 2:"+appGUID+"]")}},
		{"what a container uses", logcache.Envelope{Kind: logcache.Gauge, Tags: with("instance_id", "1"), InstanceID: "1", Metrics: []logcache.Metric{
			{Name: "cpu", Value: 1.5}, {Name: "memory", Value: 10}, {Name: "disk", Value: 20}, {Name: "memory_quota", Value: 30}, {Name: "disk_quota", Value: 40}}}, 12,
			[]map[protowire.Number]string{head("9", 12, "map[1:"+appGUID+" 2:1 3:1.5 4:10 5:20 6:30 7:40]", "map[1:instance_id 2:1] map[1:source_id 2:"+appGUID+"]")}},
		{"other gauges", logcache.Envelope{Kind: logcache.Gauge, Tags: tags, InstanceID: "1", Metrics: []logcache.Metric{{Name: "a", Unit: "B/s", Value: 2}, {Name: "b", Unit: "ns", Value: 3}}}, 9,
			[]map[protowire.Number]string{
				head("6", 9, "map[1:a 2:2 3:B/s]", "map[1:source_id 2:"+appGUID+"] map[1:instance_id 2:1]"),
				head("6", 9, "map[1:b 2:3 3:ns]", "map[1:source_id 2:"+appGUID+"] map[1:instance_id 2:1]")}},
		{"a counter", logcache.Envelope{Kind: logcache.Counter, Tags: tags, InstanceID: "1", Metrics: []logcache.Metric{{Name: "n", Value: 7}}}, 10,
			[]map[protowire.Number]string{head("7", 10, "map[1:n 2:0 3:7]", "map[1:source_id 2:"+appGUID+"] map[1:instance_id 2:1]")}},
		{"a request with a method that dropsonde does not know", logcache.Envelope{Kind: logcache.Timer, Tags: with("method", "BREW")}, 7, nil},
	} {
		c.e.Timestamp, c.e.SourceID = at, appGUID
		var got []map[protowire.Number]string
		for _, b := range dropsonde(&c.e) {
			got = append(got, decoded(t, b, c.field, fieldTags))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestDropsondeOfARequest(t *testing.T) {
	e := logcache.Envelope{Kind: logcache.Timer, Timestamp: time.Unix(0, 42), Began: time.Unix(0, 40), SourceID: appGUID, InstanceID: "2", Metrics: []logcache.Metric{{Name: "http", Value: 2}},
		Tags: map[string]string{"origin": "gorouter", "peer_type": "Server", "method": "PATCH", "status_code": "204", "content_length": "9", "uri": "http://h/p", "remote_address": "192.0.2.1:5",
			"user_agent": "curl", "routing_instance_id": "i-2", "forwarded": "192.0.2.1\n10.0.0.1", "request_id": "00000000-0000-0001-0200-000000000000", "app_name": "shop"}}
	all := dropsonde(&e)
	if len(all) != 1 {
		t.Fatalf("got %d envelopes", len(all))
	}
	got := decoded(t, all[0], fieldHTTP, fieldTags)
	want := "map[1:40 2:42 3:map[1:72057594037927936 2:2] 4:2 5:26 6:http://h/p 7:192.0.2.1:5 8:curl 9:204 10:9 12:"
	if http := got[fieldHTTP]; !strings.HasPrefix(http, want) || !strings.HasSuffix(http, " 13:2 14:i-2 15:192.0.2.1 10.0.0.1]") {
		t.Errorf("got %s; want %s…", http, want)
	}
	if tags := got[fieldTags]; tags != "map[1:app_name 2:shop] map[1:source_id 2:"+appGUID+"]" {
		t.Errorf("the tags are %s; want those that no field has", tags)
	}
}

func (s *station) dial(t *testing.T, who, path string) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	c, res, err := websocket.Dial(t.Context(), s.URL+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"bearer " + who}, "Origin": {"http://elsewhere"}}})
	if err == nil {
		t.Cleanup(func() { _ = c.CloseNow() })
	}
	return c, res, err
}

// The answers are the traffic controller's (loggregator-release:
// src/trafficcontroller/internal/proxy).
func TestDopplerRefuses(t *testing.T) {
	s := newStation(t, Config{})
	app := "/apps/" + appGUID
	const unseen = "/apps/99999999-2222-4333-8444-555555555555"
	for _, c := range []struct {
		who, path string
		status    int
		basic     bool
		body      string
	}{
		{"", app + "/stream", 401, true, ""},
		{"mallory", app + "/stream", 401, true, ""},
		{"joe", unseen + "/stream", 404, false, ""},
		{"joe", unseen + "/recentlogs", 404, false, ""},
		{"joe", unseen + "/containermetrics", 404, false, ""},
		{"joe", "/apps/shop/stream", 401, false, ""},
		{"joe", app + "/stream", 400, false, "Bad Request\n"}, // no websocket
		{"", "/firehose/f", 401, true, "You are not authorized. authorization not provided"},
		{"mallory", "/firehose/f", 401, true, "You are not authorized. invalid authorization"},
		{"joe", "/firehose/f", 401, true, "You are not authorized. invalid authorization"},
	} {
		res := s.get(t, c.who, c.path)
		body, _ := io.ReadAll(res.Body)
		if basic := res.Header.Get("WWW-Authenticate") == "Basic"; res.StatusCode != c.status || basic != c.basic || string(body) != c.body {
			t.Errorf("%q %s: got %d %q %v; want %d %q", c.who, c.path, res.StatusCode, body, res.Header, c.status, c.body)
		}
	}
}

func TestDopplerStreams(t *testing.T) {
	s := newStation(t, Config{})
	app, _, err := s.dial(t, "joe", "/apps/"+appGUID+"/stream")
	if err != nil {
		t.Fatal(err)
	}
	logs, _, err := s.dial(t, "nozzle", "/firehose/f?filter-type=logs")
	if err != nil {
		t.Fatal(err)
	}
	metrics, _, err := s.dial(t, "nozzle", "/firehose/g?filter-type=metrics")
	if err != nil {
		t.Fatal(err)
	}
	s.listening(t, 3)
	s.hub.Publish(line("other", "1"))
	s.hub.Publish(gauge("other", "cpu"))
	s.hub.Publish(line(appGUID, "2"))
	for _, c := range []struct {
		name string
		conn *websocket.Conn
		want []string
	}{
		{"the app's", app, []string{"2"}}, {"the firehose of logs", logs, []string{"1", "2"}}, {"the firehose of metrics", metrics, []string{"cpu"}},
	} {
		for _, want := range c.want {
			kind, frame, err := c.conn.Read(t.Context())
			if err != nil || kind != websocket.MessageBinary {
				t.Fatalf("%s: got %v, %v", c.name, kind, err)
			}
			e := decoded(t, frame, fieldLog, fieldValue)
			if text := e[fieldLog] + e[fieldValue]; !strings.HasPrefix(text, "map[1:"+want+" ") {
				t.Errorf("%s: got %s; want %s", c.name, text, want)
			}
		}
	}
	s.stop()
	if _, _, err := app.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("the end is %v", err)
	}
	s.listening(t, 0)
}

// A client that closes its websocket leaves nothing behind.
func TestDopplerClientsLeave(t *testing.T) {
	s := newStation(t, Config{})
	conn, _, err := s.dial(t, "joe", "/apps/"+appGUID+"/stream")
	if err != nil {
		t.Fatal(err)
	}
	s.listening(t, 1)
	_ = conn.CloseNow()
	s.listening(t, 0)
}

// parts are the envelopes of an answer.
func parts(t *testing.T, res *http.Response, inner protowire.Number) (all []string) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/x-protobuf" {
		t.Fatalf("got %s, %v", kind, err)
	}
	in := multipart.NewReader(bufio.NewReader(res.Body), params["boundary"])
	for {
		part, err := in.NextPart()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, decoded(t, b, inner)[inner])
	}
}

func TestRecentLogsAndContainerMetrics(t *testing.T) {
	s := newStation(t, Config{})
	if got := parts(t, s.get(t, "joe", "/apps/"+appGUID+"/recentlogs"), fieldLog); len(got) != 0 {
		t.Errorf("got %q of an app that said nothing", got)
	}
	for n := range recentLimit + 5 {
		e := line(appGUID, fmt.Sprint(n))
		e.Timestamp = time.Unix(int64(n+1), 0)
		s.cache.Append(e)
	}
	got := parts(t, s.get(t, "joe", "/apps/"+appGUID+"/recentlogs"), fieldLog)
	if len(got) != recentLimit || !strings.HasPrefix(got[0], "map[1:5 ") || !strings.HasPrefix(got[99], "map[1:104 ") {
		t.Errorf("got %d lines from %s", len(got), got[0])
	}
	if got := parts(t, s.get(t, "joe", "/apps/"+appGUID+"/recentlogs?limit=2"), fieldLog); len(got) != 2 || !strings.HasPrefix(got[1], "map[1:104 ") {
		t.Errorf("got %q with a limit of 2", got)
	}
	for n, instance := range []string{"1", "0", "1"} {
		e := gauge(appGUID, "cpu", "memory", "disk", "memory_quota", "disk_quota")
		e.Timestamp, e.InstanceID, e.Metrics[0].Value = time.Now(), instance, float64(n)
		s.cache.Append(e)
	}
	usage := parts(t, s.get(t, "joe", "/apps/"+appGUID+"/containermetrics"), fieldContainer)
	if len(usage) != 2 || !strings.Contains(usage[0], " 2:0 3:1 ") || !strings.Contains(usage[1], " 2:1 3:2 ") {
		t.Errorf("got %q; want the newest of each instance", usage)
	}
}
