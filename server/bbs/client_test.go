package bbs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/guid"
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/bbsrows"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// world is a server on a real store, that a client speaks to over TLS.
type world struct {
	t      *testing.T
	store  *store.Store
	server *Server
	url    string
	http   *http.Client
	files  files
	looks  chan struct{} // one for each time the loop was to look

	containers []lrp.ContainerStatus
	running    map[string]lrp.RunInfo // what the tasks of apps run

	ctx   context.Context
	group sync.WaitGroup

	mu     sync.Mutex
	apps   []desire.App
	faults int // looks at the apps that will fail
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newStillWorld(t)
	w.run()
	return w
}

// newStillWorld is one whose server serves, but does not run yet.
func newStillWorld(t *testing.T) *world {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: s, looks: make(chan struct{}, 1000)}
	w.server = New(Config{Store: s, Rows: bbsrows.New(),
		Apps: func(tx *store.Tx) ([]desire.App, error) {
			if _, err := store.Apps.All(tx); err != nil {
				return nil, err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.faults > 0 {
				w.faults--
				return nil, errors.New("not now")
			}
			return w.apps, nil
		},
		Cells: func() []lrp.Cell {
			return []lrp.Cell{{ID: "cell-1", MemoryMB: 1024, DiskMB: 2048, Containers: 250, RootFSes: []string{"cflinuxfs4"}, RootFSProviders: []string{"docker"}, Tags: []string{"fast", "gpu"}, RequiredTags: []string{"gpu"}, Zone: "z2"}}
		},
		Containers: func(string) []lrp.ContainerStatus { return w.containers },
		Tasks:      func(*store.Tx) (map[string]lrp.RunInfo, error) { return w.running, nil },
		Address:    func() string { return strings.TrimPrefix(w.url, "https://") },
		Wake:       func() { w.looks <- struct{}{} },
	})
	w.files, err = makeFiles(t.TempDir(), []string{"localhost", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := w.files.serverConfig()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.url = "https://" + l.Addr().String()
	w.http = &http.Client{Transport: &http.Transport{TLSClientConfig: w.clientTLS()}}
	var cancel func()
	w.ctx, cancel = context.WithCancel(context.Background())
	w.group.Go(func() {
		if err := w.server.Serve(w.ctx, l, config); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		w.group.Wait()
		w.http.CloseIdleConnections()
		s.Close()
	})
	return w
}

func (w *world) run() {
	w.group.Go(func() {
		if err := w.server.Run(w.ctx); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) clientTLS() *tls.Config {
	w.t.Helper()
	pair, err := tls.LoadX509KeyPair(w.files.ClientCert, w.files.ClientKey)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := os.ReadFile(w.files.CA)
	if err != nil {
		w.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}
}

// post sends a body as it is.
func (w *world) post(path string, body []byte) (*http.Response, []byte) {
	w.t.Helper()
	res, err := w.http.Post(w.url+path, protobuf, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res, answer
}

// ask makes a call and decodes the answer.
func (w *world) ask(path string, req, into proto.Message) {
	w.t.Helper()
	body, err := proto.Marshal(req)
	if err != nil {
		w.t.Fatal(err)
	}
	_, answer := w.post(path, body)
	if err := proto.Unmarshal(answer, into); err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
}

// do makes a call and gives its error; nil for none.
func (w *world) do(path string, req proto.Message) *bbspb.Error {
	w.t.Helper()
	res := &bbspb.LifecycleResponse{}
	w.ask(path, req, res)
	return res.Error
}

// must makes a call that has to go well.
func (w *world) must(path string, req proto.Message) {
	w.t.Helper()
	if e := w.do(path, req); e != nil {
		w.t.Fatalf("%s: got error %d %q", path, e.Type, e.Message)
	}
}

func (w *world) write(f func(*store.Tx) error) {
	w.t.Helper()
	if err := w.store.Write(context.Background(), f); err != nil {
		w.t.Fatal(err)
	}
}

// swap changes the row of an instance as the loop would.
func (w *world) swap(guid string, index int, crash bool, change func(*lrp.Actual)) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		rows, err := store.ActualLRPs.By(tx, "process_guids", guid)
		for _, row := range rows {
			if row.Index != index {
				continue
			}
			next := *row
			change(&next)
			if crash {
				_, err = store.ActualLRPs.Crash(tx, *row, next)
			} else {
				_, err = store.ActualLRPs.Swap(tx, *row, next)
			}
		}
		return err
	})
}

// received is an event as a client reads it.
type received struct {
	id, name string
	data     []byte
}

// listen reads a stream in the background.
func (w *world) listen(method, path string, req proto.Message) <-chan received {
	w.t.Helper()
	body, err := proto.Marshal(req)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.http.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	if got := res.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		w.t.Fatalf("%s: got content type %q", path, got)
	}
	events := make(chan received, 2000)
	go func() {
		defer res.Body.Close()
		defer close(events)
		var e received
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch key {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data, _ = base64.StdEncoding.DecodeString(value)
			case "":
				events <- e
				e = received{}
			}
		}
	}()
	return events
}

// next waits for an event.
func next(t *testing.T, events <-chan received) received {
	t.Helper()
	select {
	case e, ok := <-events:
		if !ok {
			t.Fatal("the stream ended")
		}
		return e
	case <-time.After(time.Minute):
		t.Fatal("no event after a minute")
	}
	return received{}
}

// names waits for as many events as there are names.
func names(t *testing.T, events <-chan received, want ...string) []received {
	t.Helper()
	var got []received
	for i, name := range want {
		e := next(t, events)
		if e.name != name {
			t.Fatalf("event %d: got %s; want %s of %v", i, e.name, name, want)
		}
		got = append(got, e)
	}
	return got
}

func into[M any, P message[M]](t *testing.T, e received) P {
	t.Helper()
	m := P(new(M))
	if err := proto.Unmarshal(e.data, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// plain is a DesiredLRP that Diego takes.
func plain(guid string, instances int32) *bbspb.DesiredLRP {
	return &bbspb.DesiredLRP{ProcessGuid: guid, Domain: "tests", RootFs: "preloaded:cflinuxfs4", Instances: instances,
		Action:     &bbspb.Action{Run: &bbspb.Run{Path: "/bin/true", User: "vcap"}},
		MetricTags: map[string]*bbspb.MetricTagValue{"source_id": {Static: "log-" + guid}, "n": {Dynamic: bbspb.MetricTagDynamic_METRIC_TAG_INDEX}}}
}

func (w *world) desire(d *bbspb.DesiredLRP) {
	w.t.Helper()
	w.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
}

// touchApps changes a row that what apps desire depends on.
func touchApps(tx *store.Tx) error {
	org := &cf.Org{Name: guid.New()}
	if err := store.Orgs.Insert(tx, org); err != nil {
		return err
	}
	space := &cf.Space{Name: "s", OrgGUID: org.GUID}
	if err := store.Spaces.Insert(tx, space); err != nil {
		return err
	}
	return store.Apps.Insert(tx, &cf.App{Name: "a", SpaceGUID: space.GUID, State: cf.Stopped})
}
