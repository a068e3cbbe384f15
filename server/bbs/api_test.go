package bbs

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// fails wants a call to end with an error of Diego's.
func (w *world) fails(want *model.Error, path string, req proto.Message) {
	w.t.Helper()
	if got := w.do(path, req); !proto.Equal(got, want.Proto()) {
		w.t.Errorf("%s: got %v; want %v", path, got, want)
	}
}

func TestDesiredErrors(t *testing.T) {
	w := newWorld(t)
	w.desire(plain("p", 1))
	n := int32(1)
	update := func(guid string) proto.Message {
		return &bbspb.UpdateDesiredLRPRequest{ProcessGuid: guid, Update: &bbspb.DesiredLRPUpdate{Instances: &n}}
	}
	key := &bbspb.ActualLRPKey{ProcessGuid: "none", Domain: "d"}
	noKey := &model.Error{Type: model.InvalidRequest, Message: "Invalid field: process_guid"}
	w.fails(model.ErrExists, "/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: plain("p", 1)})
	w.fails(model.ErrNotFound, "/v1/desired_lrp/update", update("none"))
	w.fails(model.ErrNotFound, "/v1/desired_lrp/remove", &bbspb.ProcessGUIDRequest{ProcessGuid: "none"})
	w.fails(noKey, "/v1/desired_lrp/remove", &bbspb.ProcessGUIDRequest{})
	for _, path := range []string{"desired_lrps/get_by_process_guid.r3", "desired_lrps/get_by_process_guid.r2", "desired_lrp_scheduling_infos/get_by_process_guid"} {
		w.fails(model.ErrNotFound, "/v1/"+path, &bbspb.ProcessGUIDRequest{ProcessGuid: "none"})
		w.fails(noKey, "/v1/"+path, &bbspb.ProcessGUIDRequest{})
	}
	w.fails(model.ErrNotFound, "/v1/actual_lrps/retire", &bbspb.RetireActualLRPRequest{Key: key})
	w.fails(&model.Error{Type: model.InvalidRequest, Message: "Invalid field: actual_lrp_key"}, "/v1/actual_lrps/retire", &bbspb.RetireActualLRPRequest{})
	w.fails(&model.Error{Type: model.InvalidRequest, Message: "process_guids must not be empty"}, "/v1/actual_lrps/list_by_process_guids", &bbspb.ActualLRPsByProcessGUIDsRequest{})
	w.fails(model.ErrNotFound, "/v1/actual_lrp_groups/get_by_process_guid_and_index", &bbspb.ActualLRPGroupRequest{ProcessGuid: "p", Index: 7})
	w.fails(&model.Error{Type: model.InvalidRequest, Message: "Invalid field: domain"}, "/v1/domains/upsert", &bbspb.UpsertDomainRequest{})
}

// TestLists wants every list to have what its filters choose.
func TestLists(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a-1", "a-2", "b-1"} {
		d := plain(name, 1)
		d.Domain, d.Annotation, d.MemoryMb = "of-"+name[:1], "note", 64
		w.desire(d)
	}
	w.swap("a-2", 0, false, func(a *lrp.Actual) { a.State, a.InstanceGUID, a.CellID = lrp.Claimed, "i", "cell-1" })
	for _, c := range []struct {
		r    *bbspb.DesiredLRPsRequest
		want string
	}{
		{&bbspb.DesiredLRPsRequest{}, "[a-1 a-2 b-1]"},
		{&bbspb.DesiredLRPsRequest{Domain: "of-b"}, "[b-1]"},
		{&bbspb.DesiredLRPsRequest{ProcessGuids: []string{"a-2", "none"}}, "[a-2]"},
		{&bbspb.DesiredLRPsRequest{AppGuids: []string{"a"}}, "[a-1 a-2]"},
		{&bbspb.DesiredLRPsRequest{Domain: "none"}, "[]"},
	} {
		for _, path := range []string{"/v1/desired_lrps/list.r3", "/v1/desired_lrps/list.r2", "/v1/desired_lrp_routing_infos/list"} {
			res := &bbspb.DesiredLRPsResponse{}
			w.ask(path, c.r, res)
			if got := fmt.Sprint(project(res.DesiredLrps, (*bbspb.DesiredLRP).GetProcessGuid)); got != c.want {
				t.Errorf("%s of %v: got %s; want %s", path, c.r, got, c.want)
			}
		}
		infos := &bbspb.DesiredLRPSchedulingInfosResponse{}
		w.ask("/v1/desired_lrp_scheduling_infos/list", c.r, infos)
		var got []string
		for _, i := range infos.Infos {
			got = append(got, i.Key.ProcessGuid)
			if i.Annotation != "note" || i.Instances != 1 || i.Resource.MemoryMb != 64 || i.Routes == nil || i.ModificationTag.Epoch == "" {
				t.Errorf("got %v", i)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("scheduling infos of %v: got %s; want %s", c.r, got, c.want)
		}
	}
	zero := int32(0)
	for _, c := range []struct {
		r    *bbspb.ActualLRPsRequest
		want int
	}{
		{&bbspb.ActualLRPsRequest{}, 3}, {&bbspb.ActualLRPsRequest{Domain: "of-a"}, 2}, {&bbspb.ActualLRPsRequest{CellId: "cell-1"}, 1},
		{&bbspb.ActualLRPsRequest{ProcessGuid: "a-1", Index: &zero}, 1}, {&bbspb.ActualLRPsRequest{ProcessGuid: "none"}, 0},
	} {
		res := &bbspb.ActualLRPsResponse{}
		if w.ask("/v1/actual_lrps/list", c.r, res); len(res.ActualLrps) != c.want {
			t.Errorf("actuals of %v: got %v; want %d", c.r, res, c.want)
		}
	}
	// Lists are kept decoded, and yet new.
	w.swap("a-2", 0, false, func(a *lrp.Actual) { a.State, a.Address = lrp.Running, "10.0.0.1" })
	w.must("/v1/actual_lrps/retire", &bbspb.RetireActualLRPRequest{Key: &bbspb.ActualLRPKey{ProcessGuid: "b-1", Domain: "of-b"}})
	again := &bbspb.ActualLRPsResponse{}
	if w.ask("/v1/actual_lrps/list", &bbspb.ActualLRPsRequest{}, again); len(again.ActualLrps) != 2 || again.ActualLrps[1].State != "RUNNING" || again.ActualLrps[1].NetInfo.Address != "10.0.0.1" {
		t.Errorf("got %v", again)
	}
	by := &bbspb.ActualLRPsResponse{}
	if w.ask("/v1/actual_lrps/list_by_process_guids", &bbspb.ActualLRPsByProcessGUIDsRequest{ProcessGuids: []string{"a-1", "a-2"}}, by); len(by.ActualLrps) != 2 {
		t.Errorf("got %v", by)
	}
	groups := &bbspb.ActualLRPGroupsResponse{}
	if w.ask("/v1/actual_lrp_groups/list", &bbspb.ActualLRPGroupsRequest{CellId: "cell-1"}, groups); len(groups.Groups) != 1 || groups.Groups[0].Instance.MetricTags["n"] != "0" {
		t.Errorf("got %v", groups)
	}
	if w.ask("/v1/actual_lrp_groups/list_by_process_guid", &bbspb.ProcessGUIDRequest{ProcessGuid: "a-1"}, groups); len(groups.Groups) != 1 {
		t.Errorf("got %v", groups)
	}
	group := &bbspb.ActualLRPGroupResponse{}
	if w.ask("/v1/actual_lrp_groups/get_by_process_guid_and_index", &bbspb.ActualLRPGroupRequest{ProcessGuid: "a-1"}, group); group.Group.GetInstance().GetState() != "UNCLAIMED" {
		t.Errorf("got %v", group)
	}
}

// TestRevision2KnowsNoLayers wants image layers to be what older clients know.
func TestRevision2KnowsNoLayers(t *testing.T) {
	w := newWorld(t)
	d := plain("p", 0)
	d.LegacyDownloadUser, d.Setup = "vcap", &bbspb.Action{Run: &bbspb.Run{Path: "s", User: "u"}}
	layer := func(kind bbspb.LayerType) *bbspb.ImageLayer {
		return &bbspb.ImageLayer{Name: "l", Url: "http://x", DestinationPath: "/d", LayerType: kind, MediaType: bbspb.MediaType_MEDIA_TYPE_TGZ,
			DigestAlgorithm: bbspb.DigestAlgorithm_DIGEST_ALGORITHM_SHA256, DigestValue: "abc"}
	}
	d.ImageLayers = []*bbspb.ImageLayer{layer(bbspb.LayerType_LAYER_TYPE_SHARED), layer(bbspb.LayerType_LAYER_TYPE_EXCLUSIVE)}
	w.desire(d)
	got := &bbspb.DesiredLRPResponse{}
	w.ask("/v1/desired_lrps/get_by_process_guid.r2", &bbspb.ProcessGUIDRequest{ProcessGuid: "p"}, got)
	want := &bbspb.Action{Serial: &bbspb.Actions{Actions: []*bbspb.Action{
		{Parallel: &bbspb.Actions{Actions: []*bbspb.Action{{Download: &bbspb.Download{Artifact: "l", From: "http://x", To: "/d", CacheKey: "sha256:abc", User: "vcap",
			ChecksumAlgorithm: "sha256", ChecksumValue: "abc"}}}}},
		d.Setup}}}
	if diff := cmp.Diff(want, got.DesiredLrp.Setup, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if deps := got.DesiredLrp.CachedDependencies; len(got.DesiredLrp.ImageLayers) != 0 || len(deps) != 1 || deps[0].CacheKey != "sha256:abc" {
		t.Errorf("got %v", got)
	}
	w.ask("/v1/desired_lrps/get_by_process_guid.r3", &bbspb.ProcessGUIDRequest{ProcessGuid: "p"}, got)
	if len(got.DesiredLrp.ImageLayers) != 2 {
		t.Errorf("revision 3: got %v", got)
	}
}

func TestUpdate(t *testing.T) {
	w := newWorld(t)
	w.desire(plain("p", 3))
	w.swap("p", 2, false, func(a *lrp.Actual) { a.State, a.InstanceGUID = lrp.Claimed, "i" })
	n, note, user := int32(1), "note", "u"
	w.must("/v1/desired_lrp/update", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "p", Update: &bbspb.DesiredLRPUpdate{
		Instances: &n, Annotation: &note, ImageUsername: &user, ImagePassword: &user,
		Routes:     &bbspb.Routes{Routes: map[string][]byte{"k": []byte("{}")}},
		MetricTags: map[string]*bbspb.MetricTagValue{"a": {Static: "b"}}}})
	got := &bbspb.DesiredLRPResponse{}
	w.ask("/v1/desired_lrps/get_by_process_guid.r3", &bbspb.ProcessGUIDRequest{ProcessGuid: "p"}, got)
	d := got.DesiredLrp
	if d.Instances != 1 || d.Annotation != "note" || d.ImagePassword != "u" || string(d.Routes.Routes["k"]) != "{}" || d.MetricTags["a"].GetStatic() != "b" ||
		len(d.MetricTags) != 1 || d.RootFs != "preloaded:cflinuxfs4" || d.ModificationTag.Index != 1 {
		t.Errorf("got %v", d)
	}
	w.write(func(tx *store.Tx) error {
		rows, err := store.ActualLRPs.By(tx, "process_guids", "p")
		if len(rows) != 2 || rows[0].Index != 0 || rows[1].Index != 2 || !rows[1].Stopping {
			t.Errorf("got %+v; want index 0, and 2 stopping", rows)
		}
		return err
	})
	w.must("/v1/actual_lrps/retire", &bbspb.RetireActualLRPRequest{Key: &bbspb.ActualLRPKey{ProcessGuid: "p", Domain: "tests"}})
	<-w.looks // the loop does not watch the rows of instances
}

func TestDomains(t *testing.T) {
	w := newWorld(t)
	for name, ttl := range map[string]uint32{"for-ever": 0, "long": 1000} {
		w.must("/v1/domains/upsert", &bbspb.UpsertDomainRequest{Domain: name, Ttl: ttl})
	}
	w.must("/v1/domains/upsert", &bbspb.UpsertDomainRequest{Domain: "over", Ttl: 1})
	w.write(func(tx *store.Tx) error { // as time would
		return store.BBSDomains.Put(tx, &store.BBSDomain{Name: "over", ExpiresAt: tx.Now.Add(-1)})
	})
	w.must("/v1/domains/upsert", &bbspb.UpsertDomainRequest{Domain: "long"})
	res := &bbspb.DomainsResponse{}
	w.ask("/v1/domains/list", &bbspb.Empty{}, res)
	have := map[string]bool{}
	for _, d := range res.Domains {
		have[d] = true
	}
	if len(res.Domains) != 4 || !have["for-ever"] || !have["long"] || !have[lrp.DomainApps] || !have[lrp.DomainTasks] {
		t.Errorf("got %v", res)
	}
}

func TestCells(t *testing.T) {
	w := newWorld(t)
	res := &bbspb.CellsResponse{}
	w.ask("/v1/cells/list.r1", &bbspb.Empty{}, res)
	want := &bbspb.CellPresence{CellId: "cell-1", Capacity: &bbspb.CellCapacity{MemoryMb: 1024, DiskMb: 2048, Containers: 250}, PlacementTags: []string{"gpu"},
		OptionalPlacementTags: []string{"fast"}, Zone: "z2", RepAddress: w.url + "/cells/cell-1", RepUrl: w.url + "/cells/cell-1",
		RootfsProviders: []*bbspb.Provider{{Name: "preloaded", Properties: []string{"cflinuxfs4"}}, {Name: "docker"}}}
	if len(res.Cells) != 1 || !proto.Equal(res.Cells[0], want) {
		t.Errorf("got %v; want %v", res.Cells, want)
	}
}

// TestAppsAreReadOnly wants what apps desire to be shown and not changed.
func TestAppsAreReadOnly(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		if err := touchApps(tx); err != nil {
			return err
		}
		apps, err := store.Apps.All(tx)
		if err != nil {
			return err
		}
		return store.Processes.Insert(tx, &cf.Process{Resource: cf.Resource{GUID: "app"}, AppGUID: apps[0].GUID, Type: "web"})
	})
	w.apps = []desire.App{{Desired: lrp.Desired{ProcessGUID: "app-12345678", Domain: lrp.DomainApps, Instances: 1, RunInfo: lrp.RunInfo{RootFS: "docker://r.io/x@sha256:0", ImageUsername: "u", ImagePassword: "p",
		Action: lrp.Codependent(lrp.Run{Path: "launcher", Args: []string{"app"}, User: "vcap", Nofile: 16384}.Action()), Ports: []uint16{8080},
		Log: lrp.LogTarget{GUID: "log"}, Egress: []lrp.EgressRule{{Protocol: "tcp", Destinations: []string{"0.0.0.0/0"}, Ports: "53,80-90"}}}}, Segment: "red", Routes: appRoutes()}}
	w.desire(plain("mine", 1))
	res := &bbspb.DesiredLRPsResponse{}
	w.ask("/v1/desired_lrps/list.r3", &bbspb.DesiredLRPsRequest{Domain: lrp.DomainApps}, res)
	if len(res.DesiredLrps) != 1 {
		t.Fatalf("got %v", res)
	}
	d := res.DesiredLrps[0]
	if d.Action.GetCodependent().GetActions()[0].GetRun().GetResourceLimits().GetNofile() != 16384 || len(d.EgressRules) != 2 || d.MetricTags["source_id"].Static != "log" ||
		d.ModificationTag.GetEpoch() == "" {
		t.Errorf("got %v", d)
	}
	for key, want := range map[string]string{ // as Oj.dump writes it (CC: diego/app_recipe_builder.rb, diego/protocol/routing_info.rb)
		"cf-router": `[{"hostnames":["a.example.com/x"],"port":8080,"route_service_url":"https://guard.example.com","isolation_segment":"red","protocol":"http1"},` +
			`{"hostnames":["b.mtls.example.com"],"port":9000,"route_service_url":null,"isolation_segment":"red","protocol":"http2",` +
			`"options":{"loadbalancing":"least-connection","route_policy_scope":"org","route_policy_sources":"cf:any,cf:app:x"}}]`,
		"tcp-router":      `[{"router_group_guid":"group","external_port":1024,"container_port":8080}]`,
		"internal-router": `[{"hostname":"back.apps.internal"}]`,
	} {
		if got := string(d.Routes.Routes[key]); got != want {
			t.Errorf("%s: got %s; want %s", key, got, want)
		}
	}
	if len(d.Routes.Routes) != 3 {
		t.Errorf("got the routes %v", d.Routes.Routes)
	}
	if d.ImageUsername != "u" || d.ImagePassword != "p" {
		t.Errorf("got image credentials %q, %q; want u, p", d.ImageUsername, d.ImagePassword)
	}
	if err := model.ValidateDesired(d); err != nil {
		t.Errorf("what is shown is not valid itself: %v", err)
	}
	n := int32(5)
	owned := model.ErrOwned("desired LRP app-12345678")
	w.fails(owned, "/v1/desired_lrp/update", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "app-12345678", Update: &bbspb.DesiredLRPUpdate{Instances: &n}})
	w.fails(owned, "/v1/desired_lrp/remove", &bbspb.ProcessGUIDRequest{ProcessGuid: "app-12345678"})
	w.fails(model.ErrExists, "/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: plain("app-12345678", 1)})
	foreign := plain("x", 1)
	foreign.Domain = lrp.DomainApps
	w.fails(model.ErrOwned("domain cf-apps"), "/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: foreign})
	w.fails(model.ErrOwned("domain cf-tasks"), "/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: "t", Domain: lrp.DomainTasks,
		Definition: &bbspb.TaskDefinition{RootFs: "preloaded:x", Action: foreign.Action}})
}

// appRoutes are routes of each kind that an app can have.
func appRoutes() []desire.AppRoute {
	domain, guarded := &cf.Domain{Name: "example.com"}, &cf.Domain{Name: "mtls.example.com", EnforcesPolicies: true, PoliciesScope: "org"}
	tcp, internal := &cf.Domain{Name: "tcp.example.com", RouterGroupGUID: "group"}, &cf.Domain{Name: "apps.internal", Internal: true}
	return []desire.AppRoute{
		{Route: &cf.Route{Host: "a", Path: "/x"}, Domain: domain, Protocol: "http1", ServiceURL: "https://guard.example.com"},
		{Route: &cf.Route{Host: "b", Options: map[string]any{"loadbalancing": "least-connection"}}, Domain: guarded, ToPort: 9000, Protocol: "http2", Sources: []string{"cf:any", "cf:app:x"}},
		{Route: &cf.Route{Port: 1024}, Domain: tcp, Protocol: "tcp"},
		{Route: &cf.Route{Host: "back"}, Domain: internal, Protocol: "http1"},
	}
}
