package api

import (
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// Processes and tasks show whom they run as (CC: ProcessModel.run_action_user,
// TaskPresenter.presented_user): the user of a docker app is its image's, or root.
func TestShownUsers(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		for name, metadata := range map[string]string{"with": `{"user":"web"}`, "without": `{}`} {
			docker := cf.Lifecycle{Type: cf.LifecycleDocker}
			d := &cf.Droplet{Resource: guid("droplet-" + name), AppGUID: "app-" + name, State: cf.DropletStaged, Lifecycle: docker, ExecutionMetadata: metadata, ProcessTypes: map[string]string{"web": ""}}
			app := &cf.App{Resource: guid("app-" + name), Name: name, SpaceGUID: "space-1", State: cf.Stopped, Lifecycle: docker}
			if err := store.Apps.Insert(tx, app); err != nil {
				return err
			}
			if err := store.Droplets.Insert(tx, d); err != nil {
				return err
			}
			app.DropletGUID = d.GUID
			if err := store.Apps.Update(tx, app); err != nil {
				return err
			}
			if err := store.Processes.Insert(tx, &cf.Process{Resource: guid("app-" + name), AppGUID: app.GUID, Type: "web", Instances: 1}); err != nil {
				return err
			}
			if err := store.Tasks.Insert(tx, &cf.Task{Resource: guid("task-" + name), AppGUID: app.GUID, DropletGUID: d.GUID, Name: "t", State: cf.TaskSucceeded, SequenceID: 1}); err != nil {
				return err
			}
		}
		return nil
	})
	w.run(t, []step{
		{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"user": "vcap"}`},
		{method: "GET", path: "/v3/processes/app-with", status: 200, want: `{"user": "web"}`},
		{method: "GET", path: "/v3/processes/app-without", status: 200, want: `{"user": "root"}`},
		{method: "PATCH", path: "/v3/processes/app-with", body: `{"user": "vcap"}`, status: 200, want: `{"user": "vcap"}`},
		{method: "PATCH", path: "/v3/processes/app-with", body: `{"user": null}`, status: 200, want: `{"user": "web"}`},
		{method: "GET", path: "/v3/processes?app_guids=app-with", status: 200, want: `{"resources": [{"user": "web"}]}`},
		{method: "GET", path: "/v3/apps/app-without/processes", status: 200, want: `{"resources": [{"user": "root"}]}`},
		{method: "GET", path: "/v3/tasks/task-with", status: 200, want: `{"user": "web"}`},
		{method: "GET", path: "/v3/tasks?app_guids=app-without", status: 200, want: `{"resources": [{"user": "root"}]}`},
	})
}
