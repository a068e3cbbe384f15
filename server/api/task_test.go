package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

func TestTasks(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "echo hi", "name": "t1"}`, status: 202, save: "task",
			want: `{"sequence_id": 1, "name": "t1", "command": "echo hi", "state": "RUNNING", "memory_in_mb": 1024, "disk_in_mb": 1024, "log_rate_limit_in_bytes_per_second": 1048576,
				"user": "vcap", "droplet_guid": "droplet-1", "result": {"failure_reason": null}, "relationships": {"app": {"data": {"guid": "app-1"}}}, "metadata": {"labels": {}, "annotations": {}},
				"links": {"cancel": {"href": "{url}/v3/tasks/{task}/actions/cancel", "method": "POST"}, "app": {}, "droplet": {}, "self": {}}}`},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"template": {"process": {"guid": "app-1"}}, "memory_in_mb": 64}`, status: 202, want: `{"sequence_id": 2, "command": "./run", "memory_in_mb": 64}`},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{}`, status: 422, want: detail(10008, "Command No command or template provided")},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x", "disk_in_mb": 20000}`, status: 422, want: detail(10008, "Cannot request disk_in_mb greater than 10240")},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x", "droplet_guid": "none"}`, status: 404, want: detail(10010, "Droplet not found")},
		{as: "space_supporter", method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x"}`, status: 403},
		{as: "space_developer", method: "GET", path: "/v3/apps/app-1/tasks?sequence_ids=1&page=1&per_page=1", status: 200, want: `{"resources": [{"command": "echo hi"}]}`},
		{as: "space_developer", method: "GET", path: "/v3/tasks/{task}", status: 200, want: `{"command": "echo hi"}`},
		{method: "PATCH", path: "/v3/tasks/{task}", body: `{"metadata": {"labels": {"a": "b"}}}`, status: 200, want: `{"metadata": {"labels": {"a": "b"}}}`},
		{as: "space_supporter", method: "PUT", path: "/v3/tasks/{task}/cancel", status: 202, want: `{"state": "CANCELING"}`},
		{method: "POST", path: "/v3/tasks/{task}/actions/cancel", status: 202},
		{method: "GET", path: "/v3/tasks?states=CANCELING", status: 200, want: `{"pagination": {"total_results": 1}}`},
	})
	for _, path := range []string{"/v3/tasks", "/v3/apps/app-1/tasks", "/v3/tasks/{task}"} {
		got := w.ask("space_supporter", "GET", w.fill(path), "", "")
		if got.status != 200 || contains(got.json, "command") {
			t.Errorf("%s: got %d %s; want no command", path, got.status, got.text)
		}
	}
	w.write(func(tx *store.Tx) error {
		a, err := store.Apps.Get(tx, "app-1")
		if err != nil {
			return err
		}
		a.DropletGUID = ""
		return store.Apps.Update(tx, a)
	})
	w.run(t, []step{
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x"}`, status: 422,
			want: detail(10008, "Task must have a droplet. Specify droplet or assign current droplet to app.")},
		{method: "PATCH", path: "/v3/feature_flags/task_creation", body: `{"enabled": false}`, status: 200},
		{as: "space_developer", method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x"}`, status: 403, want: detail(330002, "Feature Disabled: task_creation")},
	})
}

// TestTheTemplateOfATask has a user name, as the template of a task, a process whose command
// the user may not see: the task must not show it.
func TestTheTemplateOfATask(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		if err := store.Spaces.Insert(tx, &cf.Space{Resource: guid("space-3"), Name: "own", OrgGUID: "org-1"}); err != nil {
			return err
		}
		if err := seedApp(tx, "app-2", "own"); err != nil {
			return err
		}
		a, err := store.Apps.Get(tx, "app-2")
		if err != nil {
			return err
		}
		a.SpaceGUID = "space-3"
		for _, user := range []string{"space_auditor", "space_developer"} {
			if err := store.Roles.Insert(tx, &cf.Role{Type: cf.SpaceDeveloper, UserGUID: "user-" + user, OrgGUID: "org-1", SpaceGUID: "space-3"}); err != nil {
				return err
			}
		}
		return store.Apps.Update(tx, a)
	})
	const path, body = "/v3/apps/app-2/tasks", `{"template": {"process": {"guid": "app-1"}}}`
	w.run(t, []step{
		{as: "space_auditor", method: "GET", path: "/v3/processes/app-1", status: 200},
		{as: "space_auditor", method: "POST", path: path, body: `{"command": "x"}`, status: 202},
		{as: "space_auditor", method: "POST", path: path, body: body, status: 404, want: detail(10010, "Process not found")},
		{as: "space_developer", method: "POST", path: path, body: body, status: 202, want: `{"command": "./run"}`},
	})
}

// contains reports whether an object of v has the key.
func contains(v any, key string) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if k == key || contains(x, key) {
				return true
			}
		}
	case []any:
		for _, x := range v {
			if contains(x, key) {
				return true
			}
		}
	}
	return false
}

// A waiting CLI gets the end of a task as soon as it happens.
func TestTaskIsHeldUntilItEnds(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x"}`, status: 202, save: "task"}})
	req, err := http.NewRequestWithContext(context.Background(), "GET", w.url+w.fill("/v3/tasks/{task}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "cf/8.18.4")
	req.Header.Set("Authorization", "bearer "+w.token("admin"))
	done := make(chan time.Duration, 1)
	began := time.Now()
	go func() {
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
		}
		done <- time.Since(began)
	}()
	for _, state := range []cf.TaskState{cf.TaskRunning, cf.TaskFailed} {
		select {
		case <-done:
			t.Fatalf("answered before the task was %s", state)
		case <-time.After(50 * time.Millisecond):
		}
		w.write(func(tx *store.Tx) error {
			task, err := store.Tasks.Get(tx, w.saved["task"])
			if err != nil {
				return err
			}
			task.State = state
			return store.Tasks.Update(tx, task)
		})
	}
	if took := <-done; took >= holdFor {
		t.Errorf("answered after %s, when the wait for news ends in any case", took)
	}
	w.run(t, []step{{method: "PUT", path: "/v3/tasks/{task}/cancel", status: 422, want: detail(10008, "Task state is FAILED and therefore cannot be canceled")}})
}
