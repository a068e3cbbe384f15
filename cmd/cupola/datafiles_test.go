package main

import (
	"fmt"
	"path/filepath"
	"time"
)

// filesAreShared has the containers of an app share a directory: what a task
// writes is there for the next, for an instance, and for nobody once it is gone.
func (d *daemon) filesAreShared() {
	d.t.Helper()
	instance := d.dataInstance("files", "shared")
	binding := d.dataBinding("hello-postgres", instance)
	at := "/var/vcap/data/" + instance
	d.tasks("echo kept > "+at+"/row", "SUCCEEDED")
	d.tasks(`test "$(cat `+at+`/row)" = kept && echo "$VCAP_SERVICES" | grep -q '"container_dir":"`+at+`"'`, "SUCCEEDED")
	d.restartApp("hello-postgres")
	if got := d.seenAt(at + "/row"); got != 2 {
		d.t.Errorf("%d processes see the row; want the app and its init", got)
	}
	if err := d.change("DELETE", "/v3/service_credential_bindings/"+binding, nil); err != nil {
		d.t.Fatal(err)
	}
	d.tasks("test -e "+at+"/row", "FAILED")
	if err := d.change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
		d.t.Fatal(err)
	}
}

// seenAt counts the processes in the container of hello-postgres that see a file.
func (d *daemon) seenAt(path string) (n int) {
	d.t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/root" + path)
	if err != nil {
		d.t.Fatal(err)
	}
	return len(links)
}

// tasks runs a task of hello-postgres, and wants it to end so.
func (d *daemon) tasks(command, want string) {
	d.t.Helper()
	var task struct{ GUID, State string }
	d.api("POST", "/v3/apps/"+d.app("hello-postgres")+"/tasks", doc{"command": command, "memory_in_mb": 32, "disk_in_mb": 64}, &task)
	eventually(d.t, 20*time.Second, func() string {
		d.api("GET", "/v3/tasks/"+task.GUID, nil, &task)
		if task.State != want {
			return fmt.Sprintf("%s: the task is %s; want %s", command, task.State, want)
		}
		return ""
	})
}
