package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// elsewhere is a daemon on a directory that does not exist yet, and that does
// not run.
func elsewhere(d *e2e.Daemon, t *testing.T) *e2e.Daemon {
	t.Helper()
	above, err := os.MkdirTemp("", e2e.DaemonDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(above, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(above) })
	return &e2e.Daemon{T: t, Binary: d.Binary, Dir: filepath.Join(above, "data"), Addr: "127.0.0.1:0", Log: &e2e.LogBuffer{}, Admin: &e2e.AdminSession{}}
}

// writes makes orgs until ctx ends.
func writes(d *e2e.Daemon, ctx context.Context, made *atomic.Int64) {
	c := d.Client()
	for ctx.Err() == nil {
		if err := c.Call(ctx, "POST", "/v3/organizations", e2e.Doc{"name": fmt.Sprint("org-", made.Load())}, nil); err == nil {
			made.Add(1)
		}
	}
}

// TestABackupBringsEveryAppBack backs up a daemon under load, and restores the
// file on another directory, with no registry to be asked: what ran answers
// there, secrets are readable, and what was under way has ended with a reason.
func TestABackupBringsEveryAppBack(t *testing.T) {
	t.Parallel()
	binary, r := e2e.NeedBinary(t), e2e.StartRegistry(t)
	d := e2e.StartDaemon(t, binary)
	r.Push(t, "hello", v1.Config{Entrypoint: []string{"/hello"}}, e2e.SmallStack(t, "docker"), e2e.LayerOf(t, e2e.TarEntry{Header: tar.Header{Name: "hello", Mode: 0o755}, Content: e2e.HelloProgram(t)}))
	d.Flag("diego_docker", true)
	if fault := d.PushDocker(t, "hello-image", r.Host+"/stacks/small:hello", e2e.RegistryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.MapRoute(t, "hello-image")
	root := filepath.Join(t.TempDir(), "root.tar")
	if err := os.WriteFile(root, e2e.SmallStack(t, "mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"push", withNoise(t, e2e.Example(t, "node"))}, {"stack", "import", "mine", root, "--data-dir", d.Dir}} {
		if out, err := d.Run(args...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	d.API("PATCH", "/v3/apps/"+d.App("hello-node")+"/environment_variables", e2e.Doc{"var": e2e.Doc{"SECRET": "kept"}}, nil)
	var task struct{ GUID string }
	d.API("POST", "/v3/apps/"+d.App("hello-node")+"/tasks", e2e.Doc{"command": "sleep 600"}, &task)
	e2e.Eventually(t, time.Minute, func() string { return taskIs(d, task.GUID, "RUNNING") })
	d.Running("hello-image", "web", 1)

	file := filepath.Join(t.TempDir(), "all.backup")
	backUpUnderLoad(d, file)
	knocks := r.Vanish(t)
	spoiled(t, binary, file)

	e := elsewhere(d, t)
	if err := os.MkdirAll(filepath.Join(filepath.Dir(e.Dir), ".data.restore-killed", "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	restore := func() (string, error) {
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		cmd := exec.Command(binary, "restore", "--data-dir", e.Dir, "-")
		cmd.Stdin = in
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := restore(); err != nil || !strings.Contains(out, "Start the daemon and its apps with") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := restore(); err == nil || !strings.Contains(out, "is not empty") {
		t.Errorf("over what is there: got %v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(e.Dir), ".*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	t.Cleanup(e.Destroy)
	e.Start()
	for _, app := range []string{"hello-node", "hello-image"} {
		e.Running(app, "web", 1)
		e.Answers(app, "hello from "+app)
	}
	var build struct{ GUID string }
	e.API("POST", "/v3/builds", e2e.Doc{"package": e2e.Doc{"guid": e.First("/v3/apps/" + e.App("hello-node") + "/packages")}}, &build)
	if b := e.Built(t, build.GUID); b.State != "STAGED" {
		t.Errorf("got %+v of a restored package", b)
	}
	e2e.Eventually(t, time.Minute, func() string { return taskIs(e, task.GUID, "FAILED cell disappeared before completion") })
	var env struct{ Var map[string]string }
	e.API("GET", "/v3/apps/"+e.App("hello-node")+"/environment_variables", nil, &env)
	if env.Var["SECRET"] != "kept" {
		t.Errorf("got %v; want the secret", env.Var)
	}
	if out, err := e.Run("stack", "ls", "--data-dir", e.Dir); err != nil || !strings.Contains(out, "\nmine ") {
		t.Errorf("%v\n%s", err, out)
	}
	if n := knocks.Load(); n != 0 {
		t.Errorf("got %d connections to a registry that is gone; want none", n)
	}
	// The first one has gone on as if nothing were.
	d.Answers("hello-node", "hello from hello-node")
}

func taskIs(d *e2e.Daemon, guid, want string) string {
	var task struct {
		State  string
		Result struct {
			Reason string `json:"failure_reason"`
		}
	}
	d.API("GET", "/v3/tasks/"+guid, nil, &task)
	if got := strings.TrimSpace(task.State + " " + task.Result.Reason); got != want {
		return got
	}
	return ""
}

// withNoise is a copy of an app with a file that does not compress, so that its package is stored unpacked.
func withNoise(t *testing.T, app string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	noise := make([]byte, 2<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	if err := errors.Join(os.CopyFS(dir, os.DirFS(app)), os.WriteFile(filepath.Join(dir, "noise.bin"), noise, 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// backUpUnderLoad backs up while orgs are made and an app is asked.
func backUpUnderLoad(d *e2e.Daemon, file string) {
	d.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var made, sent, failed atomic.Int64
	go writes(d, ctx, &made)
	for _, i := range d.Running("hello-node", "web", 1) {
		go e2e.Load(ctx, "http://"+i.Host+":8080/health", &sent, &failed)
	}
	e2e.Eventually(d.T, time.Minute, func() string {
		if made.Load() < 5 {
			return "few orgs are made"
		}
		return ""
	})
	if out, err := d.Run("backup", "--data-dir", d.Dir, file); err != nil {
		d.T.Fatalf("%v\n%s", err, out)
	}
	if out, err := d.Run("verify", file); err != nil || !strings.Contains(out, "is valid") {
		d.T.Fatalf("%v\n%s", err, out)
	}
	if out, err := d.Run("backup", "--data-dir", d.Dir, file); err == nil || !strings.Contains(out, "already exists") {
		d.T.Errorf("over another backup: got %v\n%s", err, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		d.T.Errorf("got %v, %v; want a file of root's alone", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(d.Dir, "backup-*")); len(left) > 0 {
		d.T.Errorf("left %v", left)
	}
	if failed.Load() > 0 {
		d.T.Errorf("%d of %d requests failed", failed.Load(), sent.Load())
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
