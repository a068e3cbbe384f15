package loggregator

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/server/drain"
	"cupola/server/logcache"
	"cupola/server/router"
	"cupola/store"
	"cupola/store/cf"
)

// speaking is a stream with the app "shop" in org o and space s.
func speaking(t *testing.T) (*Stream, *cf.App) {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	app := &cf.App{Resource: cf.Resource{GUID: "app-1"}, Name: "shop", State: cf.Stopped, SpaceGUID: "space-1"}
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		if err := store.Orgs.Insert(tx, &cf.Org{Resource: cf.Resource{GUID: "org-1"}, Name: "o"}); err != nil {
			return err
		}
		if err := store.Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: "space-1"}, Name: "s", OrgGUID: "org-1"}); err != nil {
			return err
		}
		return store.Apps.Insert(tx, app)
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	return &Stream{Config: Config{Store: s, Log: log}, Cache: logcache.New(logcache.Config{Log: log}), drains: drain.New(drain.Config{})}, app
}

// last is the newest envelope of a kind.
func (s *Stream) last(t *testing.T, kind logcache.Kind) logcache.Envelope {
	t.Helper()
	all := s.Cache.Read(logcache.Query{SourceID: "app-1", Kinds: []logcache.Kind{kind}, Descending: true, Limit: 1})
	if len(all) == 0 {
		t.Fatal("nothing was logged")
	}
	return all[0]
}

// The tags are those of the components (CC: lib/vcap/app_log_emitter.rb,
// gorouter: accesslog/dropsonde_logsender.go, executor: resources.go) with the
// agent's.
func TestEnvelopesHaveTheirComponentsTags(t *testing.T) {
	s, _ := speaking(t)
	place := map[string]string{"app_id": "app-1", "app_name": "shop", "space_id": "space-1", "space_name": "s", "organization_id": "org-1", "organization_name": "o"}
	with := func(more map[string]string) map[string]string {
		tags := map[string]string{"deployment": "cf", "index": "0", "ip": "127.0.0.1"}
		maps.Copy(tags, place)
		maps.Copy(tags, more)
		return tags
	}
	of := maps.Clone(place)
	of["process_type"], of["source_id"], of["instance_id"], of["process_instance_id"] = "web", "app-1", "2", "i-2"
	instance := maps.Clone(of)
	maps.Copy(instance, CellTags())
	instance["index"] = "cell-7"
	s.InstanceTags = func(guid string) map[string]string {
		if guid == "i-2" {
			return instance
		}
		return nil
	}
	for _, c := range []struct {
		name, instance string
		say            func()
		want           map[string]string
	}{
		{"Cloud Controller", "0", func() { s.API("app-1", "x") }, with(map[string]string{"origin": "cloud_controller", "job": "api", "source_type": "API"})},
		{"the router, of a route", "0", func() { s.Router("app-1", "x") }, with(map[string]string{"origin": "gorouter", "job": "router", "source_type": "RTR"})},
		{"the router, of a request", "0", func() {
			s.Access(router.AccessEntry{AppGUID: "app-1", InstanceGUID: "i-2", Index: "2", At: time.Now(), Request: &http.Request{Method: "GET"}, Line: []byte("x")})
		}, func() map[string]string {
			tags := with(of)
			maps.Copy(tags, map[string]string{"origin": "gorouter", "job": "router", "source_type": "RTR", "__v1_type": "LogMessage"})
			return tags
		}()},
		{"what the platform says of a staging", "0", func() {
			s.Line(lrp.LogLine{Target: lrp.LogTarget{GUID: "app-1", Source: "STG", Instance: "0"}, At: time.Now()})
		}, with(map[string]string{"origin": "rep", "job": "diego-cell", "source_type": "STG"})},
		{"a session of cf ssh", "2", func() {
			s.Line(lrp.LogLine{Target: lrp.LogTarget{GUID: "app-1", Source: "SSH", Instance: "2", Tags: place}, At: time.Now()})
		}, with(map[string]string{"origin": "rep", "job": "diego-cell", "source_type": "SSH"})},
	} {
		c.say()
		e := s.last(t, logcache.Log)
		if d := cmp.Diff(c.want, e.Tags); d != "" || e.InstanceID != c.instance {
			t.Errorf("%s: instance %s: %s", c.name, e.InstanceID, d)
		}
	}
	if e := s.last(t, logcache.Timer); e.InstanceID != "2" {
		t.Errorf("the timer is of instance %s; want the app's", e.InstanceID)
	}
}

// A renamed app has its new name in the router's lines as soon as the cell's tags
// have it, and in Cloud Controller's at once.
func TestARenameChangesTheTags(t *testing.T) {
	s, app := speaking(t)
	tags := map[string]string{"app_name": "shop"}
	s.InstanceTags = func(string) map[string]string { return tags }
	request := router.AccessEntry{AppGUID: "app-1", InstanceGUID: "i-0", Request: &http.Request{Method: "GET"}}
	request.At = time.Now()
	s.Access(request)
	before := s.last(t, logcache.Log)
	app.Name = "store"
	if err := s.Store.Write(t.Context(), func(tx *store.Tx) error { return store.Apps.Update(tx, app) }); err != nil {
		t.Fatal(err)
	}
	tags = map[string]string{"app_name": "store"}
	request.At = time.Now()
	s.Access(request)
	after := s.last(t, logcache.Log)
	if before.Tags["app_name"] != "shop" || after.Tags["app_name"] != "store" {
		t.Errorf("got %q, then %q", before.Tags["app_name"], after.Tags["app_name"])
	}
	s.API("app-1", "x")
	if e := s.last(t, logcache.Log); e.Tags["app_name"] != "store" {
		t.Errorf("the API says %q", e.Tags["app_name"])
	}
}

// What the platform says of a service instance has its tags, and no app's.
func TestTagsOfAServiceInstance(t *testing.T) {
	s, _ := speaking(t)
	err := s.Store.Write(t.Context(), func(tx *store.Tx) error {
		db := &cf.DataInstance{Resource: cf.Resource{GUID: "app-1-db"}, Service: "postgres", Plan: "small", State: cf.DataReady}
		i := &cf.ServiceInstance{Resource: db.Resource, Name: "notes", Type: cf.UserProvided, SpaceGUID: "space-1"}
		return errors.Join(store.DataInstances.Insert(tx, db), store.ServiceInstances.Insert(tx, i))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Scrub = func(guid string, text []byte) []byte { return []byte(guid + " says " + string(text)) }
	s.Line(lrp.LogLine{Target: lrp.LogTarget{GUID: "app-1-db", Source: "CELL", Instance: "0"}, At: time.Now(), Text: []byte("x")})
	all := s.Cache.Read(logcache.Query{SourceID: "app-1-db"})
	want := map[string]string{"service_instance_id": "app-1-db", "service_instance_name": "notes", "space_id": "space-1", "space_name": "s", "organization_id": "org-1", "organization_name": "o",
		"deployment": "cf", "index": "0", "ip": "127.0.0.1", "origin": "rep", "job": "diego-cell", "source_type": "CELL"}
	if len(all) != 1 || string(all[0].Payload) != "app-1-db says x" || !maps.Equal(all[0].Tags, want) {
		t.Errorf("got %+v", all)
	}
}
