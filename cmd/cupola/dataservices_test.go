package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDataServices has an app keep notes in a database of the built-in broker,
// and takes away what may go: the daemon, the database's container, the
// binding, the instance.
func TestDataServices(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t), "--data-services", "postgres,redis,files")
	d.refusedWithoutStack()
	began := time.Now()
	d.prepared()
	t.Logf("prepared in %.1f s", time.Since(began).Seconds())
	d.pushNotes()
	began = time.Now()
	notes := d.dataInstance("postgres", "notes")
	made := time.Since(began)
	binding := d.dataBinding("hello-postgres", notes)
	t.Logf("made after %.1f s, bound after %.1f s", made.Seconds(), time.Since(began).Seconds())
	d.restartApp("hello-postgres")
	d.notesOutlive()
	d.isCut(binding)
	d.redisOutlives()
	d.filesAreShared()
	d.isGone(notes)
}

// prepared has the stack that databases run on. It comes from the machine's apt
// sources.
func (d *daemon) prepared() {
	d.t.Helper()
	out, err := d.run("broker", "prepare", "--data-dir", d.dir)
	for _, sign := range []string{"no such host", "connection refused", "network is unreachable", "no route to host", "i/o timeout"} {
		if err != nil && strings.Contains(out, sign) {
			d.t.Skipf("the machine's apt sources do not answer: %s", out)
		}
	}
	if err != nil {
		d.t.Fatalf("broker prepare: %v\n%s", err, out)
	}
}

func (d *daemon) refusedWithoutStack() {
	d.t.Helper()
	_, err := d.makeDataInstance("postgres", "early")
	if err == nil || !strings.Contains(err.Error(), "cupola broker prepare") {
		d.t.Errorf("got %v; want to be told what is missing", err)
	}
}

// pushNotes pushes the example, without a database. It is built here, where most
// of it was compiled before: TestExamples stages Go from source.
func (d *daemon) pushNotes() {
	d.t.Helper()
	dir := filepath.Join(d.t.TempDir(), "app")
	build := exec.CommandContext(d.t.Context(), "go", "build", "-o", filepath.Join(dir, "notes"), ".")
	build.Dir, build.Env = example(d.t, "postgres"), append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		d.t.Fatalf("go build: %v\n%s", err, out)
	}
	manifest := "applications:\n- name: hello-postgres\n  buildpacks: [binary_buildpack]\n  command: ./notes\n  memory: 64M\n  disk_quota: 64M\n"
	if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), []byte(manifest), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if out, err := d.run("push", dir); err != nil {
		d.t.Fatalf("push: %v\n%s", err, out)
	}
	d.running("hello-postgres", "web", 1)
}

// change makes a call that ends with a job, and waits for the job.
func (d *daemon) change(method, path string, body any) error {
	d.t.Helper()
	c := d.client()
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(d.t.Context(), method, c.url(path), bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.send(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	if job := res.Header.Get("Location"); job != "" && res.StatusCode == http.StatusAccepted {
		return c.job(d.t.Context(), job)
	}
	return nil
}

func (d *daemon) makeDataInstance(service, name string) (guid string, err error) {
	d.t.Helper()
	plan := d.waitFor("/v3/service_plans?names=small&service_offering_names=" + service + "&available=true")
	err = d.change("POST", "/v3/service_instances", doc{"type": "managed", "name": name,
		"relationships": doc{"space": toOne(d.first("/v3/spaces?names=dev")), "service_plan": toOne(plan)}})
	if err != nil {
		return "", err
	}
	return d.first("/v3/service_instances?names=" + name), nil
}

func (d *daemon) dataInstance(service, name string) (guid string) {
	d.t.Helper()
	guid, err := d.makeDataInstance(service, name)
	if err != nil {
		d.t.Fatal(err)
	}
	return guid
}

func (d *daemon) dataBinding(app, instance string) (guid string) {
	d.t.Helper()
	err := d.change("POST", "/v3/service_credential_bindings", doc{"type": "app", "relationships": doc{"app": toOne(d.app(app)), "service_instance": toOne(instance)}})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.first("/v3/service_credential_bindings?service_instance_guids=" + instance)
}

func (d *daemon) restartApp(app string) {
	d.t.Helper()
	d.api("POST", "/v3/apps/"+d.app(app)+"/actions/restart", nil, nil)
	d.running(app, "web", 1)
}

// keep has the app keep a note, and tells whether it said that it has.
func (d *daemon) keep(note string) bool {
	req, err := http.NewRequestWithContext(d.t.Context(), "POST", "http://"+d.addr+"/", strings.NewReader(note))
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

// notesOutlive keeps notes all the while the database's container and the
// daemon are killed, and wants every one that the app said it has.
func (d *daemon) notesOutlive() {
	d.t.Helper()
	eventually(d.t, 10*time.Second, func() string {
		if d.keep("the first") {
			return ""
		}
		return "no note was kept"
	})
	ctx, cancel := context.WithCancel(d.t.Context())
	kept, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if d.keep(fmt.Sprintf("note %d.", kept)) {
				kept++
			} else {
				<-time.After(20 * time.Millisecond)
			}
		}
	}()
	for range 2 {
		<-time.After(200 * time.Millisecond)
		d.killDatabase("PG_VERSION")
		d.kill()
		d.start()
	}
	eventually(d.t, 30*time.Second, func() string {
		if d.keep("the last") {
			return ""
		}
		return "no note was kept after the kills"
	})
	cancel()
	<-ended
	_, text, err := d.get("hello-postgres.localhost", "/")
	if err != nil {
		d.t.Fatal(err)
	}
	for n := range kept {
		if !strings.Contains(text, fmt.Sprintf(" note %d.\n", n)) {
			d.t.Errorf("note %d of %d was lost", n, kept)
		}
	}
	d.t.Logf("%d notes, none lost", kept)
}

// killDatabase kills the first process of a database's container, and with it
// all others. The script that it runs has mark.
func (d *daemon) killDatabase(mark string) {
	d.t.Helper()
	eventually(d.t, 20*time.Second, func() string {
		for _, pid := range d.databasePIDs(mark) {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				return ""
			}
		}
		return "there is no process of the database to kill"
	})
}

// databasePIDs are those of the shells that run such databases of this daemon.
func (d *daemon) databasePIDs(mark string) (pids []int) {
	d.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || !strings.Contains(string(line), mark) {
			continue
		}
		cgroup, err := os.ReadFile("/proc/" + e.Name() + "/cgroup")
		if pid, perr := strconv.Atoi(e.Name()); err == nil && perr == nil && containsInstance(string(cgroup), d) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isCut unbinds, and wants the running app to have lost its database.
func (d *daemon) isCut(binding string) {
	d.t.Helper()
	if err := d.change("DELETE", "/v3/service_credential_bindings/"+binding, nil); err != nil {
		d.t.Fatal(err)
	}
	eventually(d.t, 10*time.Second, func() string {
		status, said, err := d.get("hello-postgres.localhost", "/")
		if err == nil && status == 503 && strings.Contains(said, "connection refused") {
			return ""
		}
		return fmt.Sprintf("got %d %q, %v; want the connection refused", status, said, err)
	})
}

// isGone deletes an instance, and wants nothing left of it.
func (d *daemon) isGone(instance string) {
	d.t.Helper()
	if err := d.change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
		d.t.Fatal(err)
	}
	// What begins with a dot is the store's, such as the place where volumes are shown.
	if left, err := filepath.Glob(filepath.Join(d.dir, "volumes", "[^.]*")); err != nil || len(left) != 0 {
		d.t.Errorf("got volumes %v, %v; want none", left, err)
	}
	if out, err := d.run("broker", "status", "--json", "--data-dir", d.dir); err != nil || strings.TrimSpace(out) != "[]" {
		d.t.Errorf("broker status: got %q, %v; want no instance", out, err)
	}
}
