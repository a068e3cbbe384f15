package bbs

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/store"
)

// locket makes a call of gRPC's and returns its status.
func (w *world) locket(name string, req, into proto.Message) (code, message string) {
	w.t.Helper()
	body, err := proto.Marshal(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.locketBody(name, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...), into)
}

func (w *world) locketBody(name string, body []byte, into proto.Message) (code, message string) {
	w.t.Helper()
	transport := &http.Transport{TLSClientConfig: w.clientTLS(), Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP2(true)
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/models.Locket/"+name, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	res, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 || res.Header.Get("Content-Type") != "application/grpc" {
		w.t.Fatalf("%s: got %v %v", name, res.Status, res.Header)
	}
	if len(text) > 0 {
		if int(binary.BigEndian.Uint32(text[1:])) != len(text)-grpcPrefix {
			w.t.Fatalf("%s: got %q", name, text)
		}
		if err := proto.Unmarshal(text[grpcPrefix:], into); err != nil {
			w.t.Fatal(err)
		}
	}
	message, _ = url.PathUnescape(res.Trailer.Get("Grpc-Message"))
	return res.Trailer.Get("Grpc-Status"), message
}

// TestLocket holds Locket's answers (locket: handlers/handler.go, db/lock_db.go,
// models/models.go).
func TestLocket(t *testing.T) {
	w := newWorld(t)
	claim := func(key, owner string, kind int32, ttl int64) proto.Message {
		return &bbspb.LockRequest{Resource: &bbspb.LocketResource{Key: key, Owner: owner, Value: "v", TypeCode: kind}, TtlInSeconds: ttl}
	}
	release := func(key, owner string) proto.Message {
		return &bbspb.ReleaseLockRequest{Resource: &bbspb.LocketResource{Key: key, Owner: owner}}
	}
	old := &bbspb.LockRequest{Resource: &bbspb.LocketResource{Key: "old", Owner: "a", Type: "presence"}, TtlInSeconds: 5}
	for _, c := range []struct {
		name          string
		req           proto.Message
		code, message string
	}{
		{"Lock", claim("k", "a", model.Lock, 0), "3", "invalid-ttl"},
		{"Lock", claim("k", "", model.Lock, 5), "3", "invalid-owner"},
		{"Lock", claim("k", "a", 0, 5), "5", "invalid-type"},
		{"Lock", claim("k", "a", 3, 5), "5", "invalid-type"},
		{"Lock", claim("k", "a", model.Lock, 5), "0", ""},
		{"Lock", claim("k", "a", model.Lock, 500), "0", ""},
		{"Lock", claim("k", "b", model.Lock, 5), "6", "lock-collision"},
		{"Release", release("k", "b"), "6", "lock-collision"},
		{"Fetch", &bbspb.FetchLockRequest{Key: "k"}, "0", ""},
		{"Release", release("k", "a"), "0", ""},
		{"Release", release("k", "a"), "0", ""},
		{"Fetch", &bbspb.FetchLockRequest{Key: "k"}, "5", "resource-not-found"},
		{"Lock", claim("k", "b", model.Lock, 5), "0", ""},
		{"Lock", old, "0", ""},
		{"Lock", claim("bbs", "a", model.Lock, 5), "6", "lock-collision"}, // the daemon has it
		{"Release", release("cell-1", "a"), "6", "lock-collision"},
		{"FetchAll", &bbspb.FetchLocksRequest{}, "5", "invalid-type"},
	} {
		if code, message := w.locket(c.name, c.req, &bbspb.FetchLockResponse{}); code != c.code || message != c.message {
			t.Errorf("%s %v: got %s %q; want %s %q", c.name, c.req, code, message, c.code, c.message)
		}
	}
	if code, _ := w.locketBody("Lock", []byte("no message"), nil); code != "3" {
		t.Errorf("got %s for garbage", code)
	}
	checkLocks(t, w, model.Lock, "auctioneer", "bbs", "k=b:v", "route-emitter")
	checkLocks(t, w, model.Presence, "cell-1", "old=a:")
	w.write(func(tx *store.Tx) error { // as time does
		return store.BBSLocks.Put(tx, &store.BBSLock{Key: "k", Owner: "b", Type: model.Lock, ExpiresAt: tx.Now})
	})
	checkLocks(t, w, model.Lock, "auctioneer", "bbs", "route-emitter")
	if code, _ := w.locket("Lock", claim("k", "c", model.Lock, 5), &bbspb.Empty{}); code != "0" {
		t.Errorf("got %s for a lock that expired", code)
	}
	res, err := w.http.Post(w.url+"/models.Locket/Lock", "application/grpc", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("got %s over HTTP/1.1", res.Status)
	}
}

// checkLocks wants those of a type: "key=owner:value", or "key" of the daemon's.
func checkLocks(t *testing.T, w *world, kind int32, want ...string) {
	t.Helper()
	res := &bbspb.FetchLocksResponse{}
	if code, message := w.locket("FetchAll", &bbspb.FetchLocksRequest{TypeCode: kind}, res); code != "0" {
		t.Fatalf("got %s %q", code, message)
	}
	var got []string
	for _, r := range res.Resources {
		if r.TypeCode != kind || r.Type != map[int32]string{1: "lock", 2: "presence"}[kind] {
			t.Errorf("got %v", r)
		}
		if r.Owner == w.server.owner {
			got = append(got, r.Key)
			continue
		}
		got = append(got, r.Key+"="+r.Owner+":"+r.Value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
