package loggregator

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cupola/server/logcache"
	"cupola/server/logcache/history"
	"cupola/store"
	"cupola/store/cf"
)

// The log lines of an app and of a service instance go with it, from the disk too; what never was one
// stays.
func TestLogsGoWithTheirSource(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write := func(f func(*store.Tx) error) {
		t.Helper()
		if err := s.Write(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	app, other := cf.App{Name: "gone", State: cf.Stopped}, cf.App{Name: "stays", State: cf.Stopped}
	write(func(tx *store.Tx) error {
		org := cf.Org{Name: "o"}
		if err := store.Orgs.Insert(tx, &org); err != nil {
			return err
		}
		space := cf.Space{Name: "s", OrgGUID: org.GUID}
		if err := store.Spaces.Insert(tx, &space); err != nil {
			return err
		}
		app.SpaceGUID, other.SpaceGUID = space.GUID, space.GUID
		if err := store.Apps.Insert(tx, &app); err != nil {
			return err
		}
		db := &cf.DataInstance{Resource: cf.Resource{GUID: "db"}, Service: "postgres", Plan: "small", State: cf.DataReady}
		return errors.Join(store.Apps.Insert(tx, &other), store.DataInstances.Insert(tx, db))
	})
	stream := &Stream{Config: Config{Store: s}, Cache: logcache.New(logcache.Config{Dir: dir, Metrics: t.TempDir(), Log: slog.New(slog.DiscardHandler)})}
	defer stream.Cache.Close()
	say := func(source string, tags map[string]string) {
		stream.Cache.Append(logcache.Envelope{Timestamp: time.Now(), SourceID: source, Tags: tags, Payload: []byte("x")})
	}
	measured := func(tag, guid string) {
		stream.Cache.History.Append(history.Origin{Source: guid, Tags: map[string]string{tag: guid}}, time.Now(), history.Point{Name: "cpu"})
	}
	measured("app_id", app.GUID)
	measured("app_id", "deleted, and only measured")
	measured("service_instance_id", "db")
	measured("service_instance_id", "deleted db, and only measured")
	known := map[string]bool{}
	look := func(want ...string) {
		t.Helper()
		if err := stream.forgetDeleted(t.Context(), known); err != nil {
			t.Fatal(err)
		}
		left, _ := os.ReadDir(dir)
		got := stream.Cache.Sources()
		if len(got) != len(want) || len(left) != len(want) {
			t.Errorf("got %v and %v; want %v", got, left, want)
		}
		for _, id := range want {
			if _, ok := got[id]; !ok {
				t.Errorf("%s is missing in %v", id, got)
			}
		}
	}
	say(app.GUID, nil)
	say(other.GUID, nil)
	say("of the BBS", nil)
	say("deleted while the daemon was down", map[string]string{"app_id": "deleted while the daemon was down"})
	say("db", map[string]string{"service_instance_id": "db"})
	say("db", map[string]string{"app_id": "db"}) // by an earlier cupola
	say("db deleted while the daemon was down", map[string]string{"service_instance_id": "db deleted while the daemon was down"})
	look(app.GUID, other.GUID, "of the BBS", "db")
	write(func(tx *store.Tx) error {
		return errors.Join(store.Apps.Delete(tx, app.GUID), store.DataInstances.Delete(tx, "db"))
	})
	look(other.GUID, "of the BBS")
	say(app.GUID, nil) // an instance that ends
	look(other.GUID, "of the BBS")
	look(other.GUID, "of the BBS")
	if len(known) != 1 {
		t.Errorf("got %v; want the app that is there", known)
	}
}

// TestLinesOfAnEarlierVersionGo starts on a log cache whose lines of a service instance do not name it, as before users
// could read them.
func TestLinesOfAnEarlierVersionGo(t *testing.T) {
	logs, dir := t.TempDir(), t.TempDir()
	s, err := store.Open(store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		for _, guid := range []string{"old", "new"} {
			if err := store.DataInstances.Insert(tx, &cf.DataInstance{Resource: cf.Resource{GUID: guid}, Service: "postgres", Plan: "small", State: cf.DataReady}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before := logcache.New(logcache.Config{Dir: logs, Log: slog.New(slog.DiscardHandler)})
	for source, tags := range map[string]map[string]string{"old": {"source_type": "APP"}, "new": {"service_instance_id": "new"}, "app": nil} {
		before.Append(logcache.Envelope{Timestamp: time.Now(), SourceID: source, Tags: tags, Payload: []byte("x")})
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	stream := New(Config{Logs: logs, Saved: filepath.Join(dir, "logs.gob"), Store: s, Log: slog.New(slog.DiscardHandler)})
	defer stream.Close()
	left := stream.Cache.Meta()
	if _, old := left["old"]; old || len(left) != 2 {
		t.Errorf("got the sources %v", left)
	}
}
