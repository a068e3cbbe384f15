package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Tasks runs a task of hello-postgres, and wants it to end so.
func (d *Daemon) Tasks(command, want string) {
	d.T.Helper()
	var task struct {
		GUID, State string
		Result      struct {
			FailureReason string `json:"failure_reason"`
		}
	}
	d.API("POST", "/v3/apps/"+d.App("hello-postgres")+"/tasks", Doc{"command": command, "memory_in_mb": 32, "disk_in_mb": 64}, &task)
	Eventually(d.T, time.Minute, func() string {
		d.API("GET", "/v3/tasks/"+task.GUID, nil, &task)
		if task.State != want {
			return fmt.Sprintf("%s: the task is %s (%s); want %s", command, task.State, task.Result.FailureReason, want)
		}
		return ""
	})
}

// prepared is the stack that services run on, as a tar, once a daemon of this package's tests has built it.
var prepared struct {
	sync.Mutex
	services []string
	file     string
}

// Prepared prepares services: by the stack of another daemon of this package's tests, if it is of all of them,
// as on a machine without network. The first one builds it.
func (d *Daemon) Prepared(services ...string) {
	d.T.Helper()
	prepared.Lock()
	defer prepared.Unlock()
	if !slices.ContainsFunc(services, func(s string) bool { return !slices.Contains(prepared.services, s) }) {
		d.stack("import", "services", prepared.file)
		return
	}
	d.Prepare(services...)
	file := filepath.Join(commonDir(d.T), strings.Join(services, "-")+".tar")
	d.stack("export", "services", file)
	prepared.services, prepared.file = services, file
}

func (d *Daemon) stack(args ...string) {
	d.T.Helper()
	if out, err := d.Run(append(append([]string{"stack"}, args...), "--data-dir", d.Dir)...); err != nil {
		d.T.Fatalf("stack %v: %v\n%s", args, err, out)
	}
}

// Prepare builds the stack that services run on. It comes from the machine's apt
// sources.
func (d *Daemon) Prepare(services ...string) {
	d.T.Helper()
	out, err := d.Run("broker", "prepare", "--data-dir", d.Dir, "--services", strings.Join(services, ","))
	for _, sign := range []string{"no such host", "connection refused", "network is unreachable", "no route to host", "i/o timeout"} {
		if err != nil && strings.Contains(out, sign) {
			d.T.Skipf("the machine's apt sources do not answer: %s", out)
		}
	}
	if err != nil {
		d.T.Fatalf("broker prepare: %v\n%s", err, out)
	}
}

// PushNotes pushes the example, without a database. It is built here, where most
// of it was compiled before: TestExamples stages Go from source.
func (d *Daemon) PushNotes() {
	d.T.Helper()
	dir := filepath.Join(d.T.TempDir(), "app")
	CopyProgram(d.T, Program(d.T, Example(d.T, "postgres"), "."), dir, "notes")
	manifest := "applications:\n- name: hello-postgres\n  buildpacks: [binary_buildpack]\n  command: ./notes\n  memory: 64M\n  disk_quota: 64M\n"
	if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), []byte(manifest), 0o600); err != nil {
		d.T.Fatal(err)
	}
	if out, err := d.Run("push", dir); err != nil {
		d.T.Fatalf("push: %v\n%s", err, out)
	}
	d.Running("hello-postgres", "web", 1)
}

// MakeDataInstance creates an instance of a data service, and waits for the job.
func (d *Daemon) MakeDataInstance(service, name string) (guid string, err error) {
	d.T.Helper()
	plan := d.WaitFor("/v3/service_plans?names=small&service_offering_names=" + service + "&available=true")
	err = d.Change("POST", "/v3/service_instances", Doc{"type": "managed", "name": name,
		"relationships": Doc{"space": ToOne(d.First("/v3/spaces?names=dev")), "service_plan": ToOne(plan)}})
	if err != nil {
		return "", err
	}
	return d.First("/v3/service_instances?names=" + name), nil
}

// DataInstance is makeDataInstance, which must succeed.
func (d *Daemon) DataInstance(service, name string) (guid string) {
	d.T.Helper()
	guid, err := d.MakeDataInstance(service, name)
	if err != nil {
		d.T.Fatal(err)
	}
	return guid
}

// DataBinding binds an app to a data service's instance, and waits for the job.
func (d *Daemon) DataBinding(app, instance string) (guid string) {
	d.T.Helper()
	err := d.Change("POST", "/v3/service_credential_bindings", Doc{"type": "app", "relationships": Doc{"app": ToOne(d.App(app)), "service_instance": ToOne(instance)}})
	if err != nil {
		d.T.Fatal(err)
	}
	return d.First("/v3/service_credential_bindings?service_instance_guids=" + instance)
}

// Keep makes the app keep a note, and reports whether the app confirmed it.
func (d *Daemon) Keep(note string) bool {
	req, err := http.NewRequestWithContext(d.T.Context(), "POST", "http://"+d.Addr+"/", strings.NewReader(note))
	if err != nil {
		return false
	}
	req.Host = "hello-postgres.localhost"
	res, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	return err == nil && res.StatusCode == 200 && string(said) == "kept\n"
}
