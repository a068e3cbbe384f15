package bbs

import (
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/store"
)

// TestCellState holds the names and the values of a rep's state (rep:
// resources.go, auctioncellrep/auction_cell_rep.go).
func TestCellState(t *testing.T) {
	w := newWorld(t)
	w.containers = []lrp.ContainerStatus{
		{GUID: "i", Kind: lrp.KindInstance, ProcessGUID: "p", Index: 2, Domain: "d", Phase: lrp.PhaseRunning, MemoryMB: 64, DiskMB: 128, MaxPids: 9, RootFS: "preloaded:cflinuxfs4", RequiredTags: []string{"gpu"}},
		{GUID: "j", Kind: lrp.KindInstance, ProcessGUID: "p", Domain: "d", Phase: lrp.PhaseStarting, MemoryMB: 1},
		{GUID: "k", Kind: lrp.KindInstance, ProcessGUID: "p", Domain: "d", Phase: lrp.PhaseExited, Failed: true},
		{GUID: "run", Kind: lrp.KindTask, Domain: "d", Phase: lrp.PhaseExited, Failed: true},
		{GUID: "staging", Kind: lrp.KindTask, Domain: lrp.DomainStaging, Phase: lrp.PhaseCreating},
	}
	w.write(func(tx *store.Tx) error {
		return store.BBSTasks.Insert(tx, &store.BBSTask{GUID: "mine", RunGUID: "run", Domain: "d", State: lrp.TaskRunning})
	})
	status, got := w.get("/cells/cell-1/state")
	want := `{"rep_url":"` + w.url + `/cells/cell-1","cell_id":"cell-1","cell_index":0,` +
		`"RootFSProviders":{"docker":{"type":"arbitrary"},"preloaded":{"set":{"cflinuxfs4":{}},"type":"fixed_set"}},` +
		`"AvailableResources":{"MemoryMB":959,"DiskMB":1920,"Containers":245},"TotalResources":{"MemoryMB":1024,"DiskMB":2048,"Containers":250},"LRPs":[` +
		`{"instance_guid":"i","process_guid":"p","index":2,"domain":"d","PlacementTags":["gpu"],"VolumeDrivers":[],"RootFs":"preloaded:cflinuxfs4","MemoryMB":64,"DiskMB":128,"MaxPids":9,"state":"RUNNING"},` +
		`{"instance_guid":"j","process_guid":"p","index":0,"domain":"d","PlacementTags":[],"VolumeDrivers":[],"RootFs":"","MemoryMB":1,"DiskMB":0,"MaxPids":0,"state":"CLAIMED"},` +
		`{"instance_guid":"k","process_guid":"p","index":0,"domain":"d","PlacementTags":[],"VolumeDrivers":[],"RootFs":"","MemoryMB":0,"DiskMB":0,"MaxPids":0,"state":"CRASHED"}],"Tasks":[` +
		`{"TaskGuid":"mine","Domain":"d","PlacementTags":[],"VolumeDrivers":[],"RootFs":"","MemoryMB":0,"DiskMB":0,"MaxPids":0,"state":"Completed","failed":true},` +
		`{"TaskGuid":"staging","Domain":"cf-app-staging","PlacementTags":[],"VolumeDrivers":[],"RootFs":"","MemoryMB":0,"DiskMB":0,"MaxPids":0,"state":"Running","failed":false}],` +
		`"StartingContainerCount":2,"Zone":"z2","Evacuating":false,"VolumeDrivers":[],"PlacementTags":["gpu"],"OptionalPlacementTags":["fast"],"ProxyMemoryAllocationMB":0}` + "\n"
	if status != http.StatusOK || got != want {
		t.Errorf("got %d %s\nwant %s", status, got, want)
	}
	if status, _ := w.get("/cells/other/state"); status != http.StatusNotFound {
		t.Errorf("a cell that does not exist: got %d", status)
	}
}

func (w *world) get(path string) (status int, body string) {
	w.t.Helper()
	res, err := w.http.Get(w.url + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestTasksOfApps shows Cloud Foundry's tasks and stagings, which clients cannot
// change.
func TestTasksOfApps(t *testing.T) {
	w := newWorld(t)
	events := w.listen("POST", "/v1/events/tasks.r1", &bbspb.Empty{})
	w.running = map[string]lrp.RunInfo{"t": {RootFS: "preloaded:minifs", MemoryMB: 64, ResultFile: "/r", Action: lrp.Run{Path: "/tmp/lifecycle/launcher", User: "vcap"}.Action(),
		Log: lrp.LogTarget{GUID: "app", Source: "APP/TASK/t"}}}
	w.write(func(tx *store.Tx) error {
		for _, row := range []lrp.Task{{GUID: "t", Domain: lrp.DomainTasks, State: lrp.TaskRunning, CellID: "cell-1"}, {GUID: "b", Domain: lrp.DomainStaging, State: lrp.TaskPending},
			{GUID: "run", Domain: "d", State: lrp.TaskPending}, {GUID: "service", Domain: lrp.DomainServices, State: lrp.TaskPending}} {
			if err := store.LRPTasks.Insert(tx, row); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range []struct {
		req  *bbspb.TasksRequest
		want []string
	}{
		{&bbspb.TasksRequest{}, []string{"b", "t"}},
		{&bbspb.TasksRequest{Domain: lrp.DomainTasks}, []string{"t"}},
		{&bbspb.TasksRequest{Domain: lrp.DomainStaging}, []string{"b"}},
		{&bbspb.TasksRequest{Domain: "d"}, nil},
		{&bbspb.TasksRequest{CellId: "cell-1"}, []string{"t"}},
	} {
		res := &bbspb.TasksResponse{}
		w.ask("/v1/tasks/list.r3", c.req, res)
		var got []string
		for _, task := range res.Tasks {
			got = append(got, task.TaskGuid)
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: %s", c.req, diff)
		}
	}
	res := &bbspb.TaskResponse{}
	w.ask("/v1/tasks/get_by_task_guid.r3", &bbspb.TaskGUIDRequest{TaskGuid: "t"}, res)
	if d := res.GetTask().GetDefinition(); res.Error != nil || res.Task.State != bbspb.TaskState_TASK_STATE_RUNNING || res.Task.CellId != "cell-1" || d.RootFs != "preloaded:minifs" || d.MemoryMb != 64 ||
		d.ResultFile != "/r" || d.Action.GetRun().GetPath() != "/tmp/lifecycle/launcher" || d.LogSource != "APP/TASK/t" {
		t.Errorf("got %v", res)
	}
	for _, path := range []string{"cancel", "resolving", "delete"} {
		w.fails(model.ErrOwned("task t"), "/v1/tasks/"+path, &bbspb.TaskGUIDRequest{TaskGuid: "t"})
		w.fails(model.ErrNotFound, "/v1/tasks/"+path, &bbspb.TaskGUIDRequest{TaskGuid: "run"})
	}
	for range 2 {
		if e := <-events; e.name != "task_created" {
			t.Errorf("got event %s", e.name)
		}
	}
}
