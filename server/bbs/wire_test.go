package bbs

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/store"
)

// TestWire holds the form of answers: 200 whatever comes of it, with a length.
func TestWire(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		what, path string
		body       []byte
		answer     []byte // nil: any
		fault      *model.Error
	}{
		{what: "ping", path: "/v1/ping", answer: []byte{0x08, 0x01}},
		{what: "nothing to say", path: "/v1/tasks/list.r3", answer: []byte{}},
		{what: "garbage", path: "/v1/desired_lrp/desire.r2", body: []byte{0xff, 0xff, 0xff}, fault: model.ErrBadRequest},
		{what: "too large", path: "/v1/desired_lrp/desire.r2", body: bytes.Repeat([]byte{0}, maxBody+1), fault: model.ErrBadRequest},
		{what: "a field of another type", path: "/v1/desired_lrp/remove", body: protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7),
			fault: &model.Error{Type: model.InvalidRequest, Message: "Invalid field: process_guid"}},
		{what: "unknown fields", path: "/v1/ping", body: protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "new"), answer: []byte{0x08, 0x01}},
	} {
		t.Run(c.what, func(t *testing.T) {
			res, body := w.post(c.path, c.body)
			if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/x-protobuf" || res.Header.Get("Content-Length") != strconv.Itoa(len(body)) || len(res.TransferEncoding) > 0 {
				t.Errorf("got %d %v", res.StatusCode, res.Header)
			}
			if c.answer != nil && !bytes.Equal(body, c.answer) {
				t.Errorf("got % x; want % x", body, c.answer)
			}
			got := &bbspb.LifecycleResponse{}
			if err := proto.Unmarshal(body, got); c.fault != nil && (err != nil || !proto.Equal(got.Error, c.fault.Proto())) {
				t.Errorf("got %v, %v; want %v", got, err, c.fault)
			}
		})
	}
}

// TestOtherRoutes wants other paths to be refused in plain HTTP.
func TestOtherRoutes(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"POST", "/v1/nothing", 404, ""},
		{"POST", "/v1//ping", 404, ""},
		{"POST", "/v1/actual_lrps/claim", 404, ""},
		{"POST", "/v1/actual_lrps/start.r1", 404, ""},
		{"POST", "/v1/actual_lrps/crash", 404, ""},
		{"POST", "/v1/actual_lrps/evacuate_running.r1", 404, ""},
		{"POST", "/v1/tasks/start", 404, ""},
		{"POST", "/v1/tasks/complete", 404, ""},
		{"GET", "/v1/ping", 405, "POST"},
		{"POST", "/v1/events.r1", 405, "GET, HEAD"},
	} {
		req, err := http.NewRequest(c.method, w.url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := w.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status || res.Header.Get("Allow") != c.allow || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s %s: got %d, %v; want %d, Allow %q", c.method, c.path, res.StatusCode, res.Header, c.status, c.allow)
		}
	}
}

// TestOnlyItsClients wants TLS of both sides, with this CA's certificates, and
// HTTP/1.1.
func TestOnlyItsClients(t *testing.T) {
	w := newWorld(t)
	other, err := makeFiles(t.TempDir(), []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := tls.LoadX509KeyPair(other.ClientCert, other.ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	server, err := tls.LoadX509KeyPair(w.files.ServerCert, w.files.ServerKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		change func(*tls.Config)
		ok     bool
	}{
		{"its client", func(*tls.Config) {}, true},
		{"one that offers HTTP/2", func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }, true},
		{"no certificate", func(c *tls.Config) { c.Certificates = nil }, false},
		{"another CA's", func(c *tls.Config) { c.Certificates = []tls.Certificate{stranger} }, false},
		{"a server's", func(c *tls.Config) { c.Certificates = []tls.Certificate{server} }, false},
		{"TLS 1.1", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			config := w.clientTLS()
			c.change(config)
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
			res, err := client.Post(w.url+"/v1/ping", protobuf, nil)
			if (err == nil) != c.ok {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				res.Body.Close()
				if res.Proto != "HTTP/1.1" {
					t.Errorf("got %s", res.Proto)
				}
			}
		})
	}
}

// TestBytesComeBack sends what is no UTF-8, negative numbers, packed ports and
// fields of a newer Diego, and wants them back, also after an update.
func TestBytesComeBack(t *testing.T) {
	const bad = "\xff\xfe\x00a"
	w := newWorld(t)
	d := plain("p", 0)
	d.Annotation, d.ImageUsername, d.ImagePassword = bad, bad, bad
	d.Env = []*bbspb.Env{{Name: bad, Value: bad}}
	d.Action.Run.Args = []string{bad}
	d.VolumeMountedFiles = []*bbspb.File{{Path: "a/b", Content: bad}}
	d.LogRateLimit = &bbspb.LogRateLimit{BytesPerSecond: -1}
	d.Routes = &bbspb.Routes{Routes: map[string][]byte{"other": {0xff, 0x00}}}
	unknown := func(n protowire.Number) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), "of a newer one")
	}
	d.ProtoReflect().SetUnknown(unknown(900))
	d.Action.Run.ProtoReflect().SetUnknown(unknown(901))
	body, err := proto.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	// Ruby packs ports, Go clients of Diego don't.
	body = protowire.AppendBytes(protowire.AppendTag(body, 14, protowire.BytesType), []byte{0x90, 0x3f, 0x91, 0x3f})
	_, answer := w.post("/v1/desired_lrp/desire.r2", protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), body))
	if len(answer) != 0 {
		t.Fatalf("got %q", answer)
	}
	n := int32(0)
	w.must("/v1/desired_lrp/update", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "p", Update: &bbspb.DesiredLRPUpdate{Instances: &n}})
	d.Ports = []uint32{8080, 8081}
	got := &bbspb.DesiredLRPResponse{}
	w.ask("/v1/desired_lrps/get_by_process_guid.r3", &bbspb.ProcessGUIDRequest{ProcessGuid: "p"}, got)
	d.ModificationTag = got.DesiredLrp.GetModificationTag()
	if !proto.Equal(d, got.DesiredLrp) {
		t.Errorf("got %v; want %v", got.DesiredLrp, d)
	}
	if d.ModificationTag.GetIndex() != 1 {
		t.Errorf("got index %d after one update", d.ModificationTag.GetIndex())
	}
}

// TestTaskBytesComeBack is the same for tasks.
func TestTaskBytesComeBack(t *testing.T) {
	const bad = "\xff\xfe"
	w := newWorld(t)
	d := &bbspb.TaskDefinition{RootFs: "preloaded:x", Action: &bbspb.Action{Run: &bbspb.Run{Path: "p", User: "u", Args: []string{bad}}}, Annotation: bad}
	d.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), "new"))
	w.must("/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: "t", Domain: "d", Definition: d})
	w.write(func(tx *store.Tx) error {
		row, err := store.BBSTasks.Get(tx, "t")
		if err != nil {
			return err
		}
		return store.BBSTasks.Change(tx, row, func(t *store.BBSTask) { t.Result, t.FailureReason = []byte(bad), bad })
	})
	got := &bbspb.TaskResponse{}
	w.ask("/v1/tasks/get_by_task_guid.r3", &bbspb.TaskGUIDRequest{TaskGuid: "t"}, got)
	if got.Task.GetResult() != bad || got.Task.FailureReason != bad || !proto.Equal(got.Task.Definition, d) {
		t.Errorf("got %v", got)
	}
}
