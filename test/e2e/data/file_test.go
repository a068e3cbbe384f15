package data

import (
	"path/filepath"

	"cupola/test/e2e"
)

// filesAreShared makes the containers of an app share a directory: what a task
// writes is there for the next and for an instance, until the service instance is deleted.
func filesAreShared(d *e2e.Daemon) {
	d.T.Helper()
	instance := d.DataInstance("files", "shared")
	binding := d.DataBinding("hello-postgres", instance)
	at := "/var/vcap/data/" + instance
	d.Tasks("echo kept > "+at+"/row", "SUCCEEDED")
	d.Tasks(`test "$(cat `+at+`/row)" = kept && echo "$VCAP_SERVICES" | grep -q '"container_dir":"`+at+`"'`, "SUCCEEDED")
	d.RestartApp("hello-postgres")
	if got := seenAt(d, at+"/row"); got != 2 {
		d.T.Errorf("%d processes see the row; want the app and its init", got)
	}
	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+binding, nil); err != nil {
		d.T.Fatal(err)
	}
	d.Tasks("test -e "+at+"/row", "FAILED")
	if err := d.Change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
		d.T.Fatal(err)
	}
}

// seenAt counts the processes in the container of hello-postgres that see a file.
func seenAt(d *e2e.Daemon, path string) (n int) {
	d.T.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/root" + path)
	if err != nil {
		d.T.Fatal(err)
	}
	return len(links)
}
