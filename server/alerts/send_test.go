package alerts

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// TestStaleReadsSendNothingTwice begins messages twice by one read of the rows, as
// happens when the rows are read while a message is on its way.
func TestStaleReadsSendNothingTwice(t *testing.T) {
	var asked atomic.Int32
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer hook.Close()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := New(Config{Parts: Parts{Store: s}})
	var stale []post
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		target, err := addTarget(tx, TargetRequest{Name: "hook", Webhook: &WebhookForm{URL: hook.URL}})
		if err == nil {
			err = queue(tx, target.GUID, cf.AlertEvent{Kind: cf.AlertEventFiring})
		}
		if err == nil {
			stale, err = readPosts(tx)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.sendAll(t.Context(), stale); err != nil {
			t.Fatal(err)
		}
		l.workers.Wait()
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the target was asked %d times; want once", n)
	}
}
