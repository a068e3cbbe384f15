package loggregator

import (
	"context"
	"maps"
	"reflect"
	"sync"

	"cupola/server/databroker"
	"cupola/store"
)

// component is a part of Cloud Foundry that writes envelopes. The agent next to it
// adds its tags (loggregator-agent-release: src/pkg/egress/v2/tagger.go), with the
// jobs of cf-deployment.
type component struct{ origin, job, source string }

var (
	fromRouter     = component{origin: "gorouter", job: "router", source: "RTR"}
	fromController = component{origin: "cloud_controller", job: "api", source: "API"}
	fromCell       = component{origin: "rep", job: "diego-cell"}
)

// What there is instead of BOSH's.
const (
	deployment = "cf"
	ip         = "127.0.0.1"
)

// The tags of an envelope that the code reads.
const (
	tagSource  = "source_type"
	tagOrigin  = "origin"
	tagApp     = "app_id"
	tagProcess = "process_type"
	tagV1      = "__v1_type" // what Loggregator notes of components that speak its first protocol
)

// tags are the tags of all envelopes of the component.
func (c component) tags() map[string]string {
	tags := map[string]string{tagOrigin: c.origin, "deployment": deployment, "job": c.job, "index": "0", "ip": ip}
	if c.source != "" {
		tags[tagSource] = c.source
	}
	return tags
}

// CellTags are the tags of the lines and measurements of a cell's containers.
func CellTags() map[string]string { return fromCell.tags() }

// instanceTags gives the lines of the router the tags of the instance that answered,
// as the routes of Diego do. The lines of one instance share a map.
type instanceTags struct {
	mu    sync.Mutex
	known map[string]routed
}

// routed are the tags of an instance's requests.
type routed struct{ cell, router map[string]string }

// maxKnown bounds the instances that are remembered; more are forgotten together.
const maxKnown = 10_000

// of are the tags of the router's lines for an instance, whose cell's tags are
// given. Those change when the app is renamed.
func (t *instanceTags) of(instanceGUID string, given map[string]string) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.known[instanceGUID]; ok && reflect.ValueOf(r.cell).Pointer() == reflect.ValueOf(given).Pointer() {
		return r.router
	}
	tags := maps.Clone(given)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, fromRouter.tags())
	tags[tagV1] = "LogMessage"
	if t.known == nil || len(t.known) >= maxKnown {
		t.known = map[string]routed{}
	}
	t.known[instanceGUID] = routed{cell: given, router: tags}
	return tags
}

// sourceTags are the tags of a component's line about an app or a service instance.
func (s *Stream) sourceTags(c component, guid string) map[string]string {
	var instance map[string]string
	err := s.Store.Read(context.Background(), func(tx *store.Tx) error {
		_, err := store.DataInstances.Get(tx, guid)
		if err == nil {
			instance, err = databroker.LogTags(tx, guid)
		}
		return err
	})
	if err != nil || instance == nil {
		return s.appTags(c, guid)
	}
	tags := c.tags()
	maps.Copy(tags, instance)
	return tags
}

// appTags are the tags of a component's line about an app: its names and those of
// where it is (CC: lib/vcap/app_log_emitter.rb). The names of a deleted app are
// empty.
func (s *Stream) appTags(c component, appGUID string) map[string]string {
	tags := c.tags()
	for _, name := range []string{"app_name", "space_id", "space_name", "organization_id", "organization_name"} {
		tags[name] = ""
	}
	tags[tagApp] = appGUID
	err := s.Store.Read(context.Background(), func(tx *store.Tx) error {
		app, err := store.Apps.Get(tx, appGUID)
		if err != nil {
			return err
		}
		space, err := store.Spaces.Get(tx, app.SpaceGUID)
		if err != nil {
			return err
		}
		org, err := store.Orgs.Get(tx, space.OrgGUID)
		if err != nil {
			return err
		}
		tags["app_name"], tags["space_id"], tags["space_name"] = app.Name, space.GUID, space.Name
		tags["organization_id"], tags["organization_name"] = org.GUID, org.Name
		return nil
	})
	if err != nil && !store.IsNotFound(err) {
		s.Log.Warn("tags of an app's log not read", "app_guid", appGUID, "err", err)
	}
	return tags
}
