package logs

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cupola/test/e2e"
)

// envelope is a log line of the RLP gateway.
type envelope struct {
	SourceID   string `json:"source_id"`
	InstanceID string `json:"instance_id"`
	Tags       map[string]string
	Log        *struct{ Payload []byte }
	Timer      *struct{ Name string }
}

// events reads a stream of the RLP gateway.
type events struct {
	*bufio.Scanner
	pending []envelope
}

// until reads envelopes until one fits.
func (e *events) until(t *testing.T, what string, fits func(envelope) bool) envelope {
	t.Helper()
	for {
		for len(e.pending) > 0 {
			next := e.pending[0]
			e.pending = e.pending[1:]
			if fits(next) {
				return next
			}
		}
		if !e.Scan() {
			t.Fatalf("the stream ended before %s: %v", what, e.Err())
		}
		if data, ok := strings.CutPrefix(e.Text(), "data: {"); ok {
			var batch struct{ Batch []envelope }
			if err := json.Unmarshal([]byte("{"+data), &batch); err != nil {
				t.Fatal(err)
			}
			e.pending = batch.Batch
		}
	}
}

func says(source, text string) func(envelope) bool {
	return func(e envelope) bool {
		return e.Log != nil && e.Tags["source_type"] == source && strings.Contains(string(e.Log.Payload), text)
	}
}

// TestStreams reads an app's log as it comes, from the RLP gateway and from
// doppler, while the app is renamed; the streams end with the logout.
func TestStreams(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.PushProbe("probe")
	guid := d.App("probe")
	c, err := e2e.Login(t.Context(), "http://"+d.Addr, "admin", e2e.AdminPassword) // its own token, which is revoked
	if err != nil {
		t.Fatal(err)
	}
	open := func(query string) *events {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL("/v2/read?source_id="+guid+"&"+query), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Send(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return &events{Scanner: bufio.NewScanner(res.Body)}
	}
	logs, timers := open("log"), open("timer")
	doppler, res, err := websocket.Dial(t.Context(), c.URL("/apps/"+guid+"/stream"), &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"bearer " + c.Token}}})
	if err != nil {
		t.Fatalf("%v: %v", err, res)
	}
	defer func() { _ = doppler.CloseNow() }()

	d.Answers("probe", "ready")
	request := logs.until(t, "the request", says("RTR", `"GET / HTTP/1.1" 200`))
	for tag, want := range map[string]string{"origin": "gorouter", "deployment": "cf", "job": "router", "index": "0", "ip": "127.0.0.1", "app_id": guid, "app_name": "probe",
		"space_name": "dev", "process_type": "web", "instance_id": "0", "__v1_type": "LogMessage"} {
		if request.Tags[tag] != want {
			t.Errorf("the router's line has %s=%q; want %q", tag, request.Tags[tag], want)
		}
	}
	timed := timers.until(t, "the request", func(e envelope) bool { return e.Timer != nil && e.Timer.Name == "http" })
	if timed.Tags["method"] != "GET" || timed.Tags["status_code"] != "200" || timed.Tags["app_name"] != "probe" || !strings.HasPrefix(timed.Tags["uri"], "http://probe.localhost") {
		t.Errorf("the timer has %v", timed.Tags)
	}
	readFrame(t, doppler, `"GET / HTTP/1.1" 200`)

	d.API("PATCH", "/v3/apps/"+guid, e2e.Doc{"name": "renamed"}, nil)
	e2e.Eventually(t, time.Minute, func() string {
		d.Answers("probe", "ready")
		if e := logs.until(t, "a request", says("RTR", "GET /")); e.Tags["app_name"] != "renamed" {
			return "the app is still " + e.Tags["app_name"]
		}
		return ""
	})

	var claims struct{ JTI string }
	body, err := base64.RawURLEncoding.DecodeString(strings.Split(c.Token, ".")[1])
	if err == nil {
		err = json.Unmarshal(body, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, c.URL("/oauth/token/revoke/"+claims.JTI), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(req); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*events{logs, timers} {
		for s.Scan() { //nolint:revive // to the end
		}
		if err := s.Err(); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
	}
	for err == nil {
		_, _, err = doppler.Read(t.Context())
	}
	if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("doppler's stream ended with %v", err)
	}
	req.Method, req.URL.Path = http.MethodGet, "/v2/read"
	if res, err := http.DefaultClient.Do(req); err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("the revoked token reads: %v, %v", res, err)
	} else if body, _ := io.ReadAll(res.Body); !strings.Contains(string(body), "not_found") {
		t.Errorf("got %s", body)
	}
}

// readFrame reads frames until one contains the text.
func readFrame(t *testing.T, conn *websocket.Conn, text string) {
	t.Helper()
	for ctx := context.WithoutCancel(t.Context()); ; {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("doppler's stream ended before %s: %v", text, err)
		}
		if strings.Contains(string(frame), text) {
			return
		}
	}
}
