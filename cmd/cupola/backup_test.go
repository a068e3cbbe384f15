package main

import (
	"archive/tar"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// elsewhere is a daemon on a directory that does not exist yet, and that does
// not run.
func (d *daemon) elsewhere(t *testing.T) *daemon {
	t.Helper()
	above, err := os.MkdirTemp("", daemonDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(above, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(above) })
	return &daemon{t: t, binary: d.binary, dir: filepath.Join(above, "data"), addr: "127.0.0.1:0", log: &logBuffer{}, admin: &adminSession{}}
}

// writes makes orgs until ctx ends.
func (d *daemon) writes(ctx context.Context, made *atomic.Int64) {
	c := d.client()
	for ctx.Err() == nil {
		if err := c.call(ctx, "POST", "/v3/organizations", doc{"name": fmt.Sprint("org-", made.Load())}, nil); err == nil {
			made.Add(1)
		}
	}
}

// TestABackupBringsEveryAppBack backs up a daemon under load, and restores the
// file on another directory, with no registry to be asked: what ran answers
// there, secrets are readable, and what was under way has ended with a reason.
func TestABackupBringsEveryAppBack(t *testing.T) {
	t.Parallel()
	binary, r := needBinary(t), startRegistry(t)
	d := startDaemon(t, binary)
	r.push(t, "hello", v1.Config{Entrypoint: []string{"/hello"}}, smallStack(t, "docker"), layerOf(t, tarEntry{tar.Header{Name: "hello", Mode: 0o755}, helloProgram(t)}))
	d.flag("diego_docker", true)
	if fault := d.pushDocker(t, "hello-image", r.host+"/stacks/small:hello", registryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.mapRoute(t, "hello-image")
	root := filepath.Join(t.TempDir(), "root.tar")
	if err := os.WriteFile(root, smallStack(t, "mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"push", example(t, "node")}, {"stack", "import", "mine", root, "--data-dir", d.dir}} {
		if out, err := d.run(args...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	d.api("PATCH", "/v3/apps/"+d.app("hello-node")+"/environment_variables", doc{"var": doc{"SECRET": "kept"}}, nil)
	var task struct{ GUID string }
	d.api("POST", "/v3/apps/"+d.app("hello-node")+"/tasks", doc{"command": "sleep 600"}, &task)
	eventually(t, 20*time.Second, func() string { return d.taskIs(task.GUID, "RUNNING") })
	d.running("hello-image", "web", 1)

	file := filepath.Join(t.TempDir(), "all.backup")
	d.backUpUnderLoad(file)
	knocks := r.vanish(t)
	spoiled(t, binary, file)

	e := d.elsewhere(t)
	if err := os.MkdirAll(filepath.Join(filepath.Dir(e.dir), ".data.restore-killed", "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	restore := func() (string, error) {
		out, err := exec.Command(binary, "restore", "--data-dir", e.dir, file).CombinedOutput()
		return string(out), err
	}
	if out, err := restore(); err != nil || !strings.Contains(out, "Start the daemon and its apps with") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := restore(); err == nil || !strings.Contains(out, "is not empty") {
		t.Errorf("over what is there: got %v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(e.dir), ".*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	t.Cleanup(e.destroy)
	e.start()
	for _, app := range []string{"hello-node", "hello-image"} {
		e.running(app, "web", 1)
		e.answers(app, "hello from "+app)
	}
	eventually(t, 20*time.Second, func() string { return e.taskIs(task.GUID, "FAILED cell disappeared before completion") })
	var env struct{ Var map[string]string }
	e.api("GET", "/v3/apps/"+e.app("hello-node")+"/environment_variables", nil, &env)
	if env.Var["SECRET"] != "kept" {
		t.Errorf("got %v; want the secret", env.Var)
	}
	if out, err := e.run("stack", "ls", "--data-dir", e.dir); err != nil || !strings.Contains(out, "\nmine ") {
		t.Errorf("%v\n%s", err, out)
	}
	if n := knocks.Load(); n != 0 {
		t.Errorf("got %d connections to a registry that is gone; want none", n)
	}
	// The first one has gone on as if nothing were.
	d.answers("hello-node", "hello from hello-node")
}

func (d *daemon) taskIs(guid, want string) string {
	var task struct {
		State  string
		Result struct {
			Reason string `json:"failure_reason"`
		}
	}
	d.api("GET", "/v3/tasks/"+guid, nil, &task)
	if got := strings.TrimSpace(task.State + " " + task.Result.Reason); got != want {
		return got
	}
	return ""
}

// backUpUnderLoad backs up while orgs are made and an app is asked.
func (d *daemon) backUpUnderLoad(file string) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var made, sent, failed atomic.Int64
	go d.writes(ctx, &made)
	for _, i := range d.running("hello-node", "web", 1) {
		go load(ctx, "http://"+i.Host+":8080/health", &sent, &failed)
	}
	eventually(d.t, 10*time.Second, func() string {
		if made.Load() < 5 {
			return "few orgs are made"
		}
		return ""
	})
	if out, err := d.run("backup", "--data-dir", d.dir, file); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	if out, err := d.run("verify", file); err != nil || !strings.Contains(out, "is sound") {
		d.t.Fatalf("%v\n%s", err, out)
	}
	if out, err := d.run("backup", "--data-dir", d.dir, file); err == nil || !strings.Contains(out, "already exists") {
		d.t.Errorf("over another backup: got %v\n%s", err, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		d.t.Errorf("got %v, %v; want a file of root's alone", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(d.dir, "backup-*")); len(left) > 0 {
		d.t.Errorf("left %v", left)
	}
	if failed.Load() > 0 {
		d.t.Errorf("%d of %d requests failed", failed.Load(), sent.Load())
	}
}

// spoiled holds that a backup with one other byte, or a byte less, is refused,
// and that nothing is made of it.
func spoiled(t *testing.T, binary, file string) {
	t.Helper()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := append([]byte(nil), whole...)
	other[len(other)/2] ^= 1
	for name, content := range map[string][]byte{"another byte": other, "a byte less": whole[:len(whole)-1], "half of it": whole[:len(whole)/2], "nothing": nil} {
		dir := t.TempDir()
		bad := filepath.Join(dir, "bad.backup")
		if err := os.WriteFile(bad, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"verify", bad}, {"restore", "--data-dir", filepath.Join(dir, "data"), bad}} {
			if out, err := exec.Command(binary, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "the backup is ") {
				t.Errorf("%s: %s: got %v\n%s", name, args[0], err, out)
			}
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}
