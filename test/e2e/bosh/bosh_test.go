package bosh

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/runtime/contract"
	"cupola/server/kube"
	"cupola/test/e2e"
)

// releaseImage is the layer of a release: its jobs, the packages that they need,
// and the least of a system.
func releaseImage(t *testing.T) []byte {
	t.Helper()
	entries := append(systemEntries(), jobEntries(t)...)
	for name, pkg := range map[string]string{"nats-server": "github.com/nats-io/nats-server/v2", "smoke": "./smoke"} {
		entries = append(entries, boshFile("var/vcap/packages/"+name+"/bin/"+name, program(t, pkg)))
	}
	return e2e.LayerOf(t, entries...)
}

// systemEntries are users, and the tools that jobs need.
func systemEntries() []e2e.TarEntry {
	entries := []e2e.TarEntry{
		boshFile("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nvcap:x:1000:1000::/home/vcap:/bin/sh\n"),
		boshFile("etc/group", "root:x:0:\nvcap:x:1000:\n"),
	}
	for _, tool := range []string{"sh", "cat", "echo", "wc", "sleep"} { // that all containers have
		entries = append(entries, e2e.TarEntry{Header: tar.Header{Name: "bin/" + tool, Typeflag: tar.TypeSymlink, Linkname: contract.Helper}, Content: nil})
	}
	return entries
}

// jobEntries are the jobs of testdata.
func jobEntries(t *testing.T) (entries []e2e.TarEntry) {
	t.Helper()
	jobs := os.DirFS("testdata/jobs")
	err := fs.WalkDir(jobs, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(jobs, name)
		entries = append(entries, boshFile("var/vcap/jobs-src/"+name, string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func boshFile(name, text string) e2e.TarEntry {
	return e2e.TarEntry{Header: tar.Header{Name: name, Mode: 0o755}, Content: []byte(text)}
}

// program builds a program of the module of the releases.
func program(t *testing.T, pkg string) string {
	t.Helper()
	text, err := os.ReadFile(e2e.Program(t, "testdata", pkg))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// boshDaemon is a daemon with a registry of releases.
type boshDaemon struct {
	*e2e.Daemon
	registry *e2e.ImageRegistry
	name     string // of the deployment
	manifest string
}

// deploy deploys the manifest, changed by operations.
func (b *boshDaemon) deploy(ops string, flags ...string) (string, error) {
	b.T.Helper()
	return b.Run(append(b.deployArgs(ops, "deploy"), flags...)...)
}

func (b *boshDaemon) deployArgs(ops, verb string) []string {
	b.T.Helper()
	file := filepath.Join(b.T.TempDir(), "ops.yml")
	if err := os.WriteFile(file, []byte(ops), 0o600); err != nil {
		b.T.Fatal(err)
	}
	return []string{"deployment", verb, "-f", b.manifest, "-o", file,
		"-v", "registry=" + b.registry.Host, "-v", "registry_user=" + e2e.RegistryUser, "-v", "registry_password=" + e2e.RegistryPassword}
}

// change is an ops file that replaces a property of the servers.
func change(property string, value any) string {
	text, _ := json.Marshal([]e2e.Doc{
		{"type": "replace", "path": "/instance_groups/name=nats/jobs/name=nats/properties/" + property + "?", "value": value},
	})
	return string(text)
}

func (b *boshDaemon) must(out string, err error) string {
	b.T.Helper()
	if err != nil {
		b.T.Fatalf("%v\n%s", err, out)
	}
	return out
}

// instanceView is an instance as the API shows it.
type instanceView struct {
	GUID      string
	Group     string
	Index     int
	Lifecycle string
	State     string
	Address   string
	UpToDate  bool `json:"up_to_date"`
	Processes []struct{ Role string }
}

// instances are the instances of the deployment, as "nats/0 running".
func (b *boshDaemon) instances() (all []string, views []instanceView) {
	b.T.Helper()
	b.API("GET", "/v1/deployments/nats-deployment/instances", nil, &views)
	for _, i := range views {
		state := i.State
		if !i.UpToDate && i.Lifecycle == "service" {
			state += ", old"
		}
		all = append(all, fmt.Sprintf("%s/%d %s", i.Group, i.Index, state))
	}
	return all, views
}

func (b *boshDaemon) wantInstances(want string) {
	b.T.Helper()
	if got, views := b.instances(); strings.Join(got, "; ") != want {
		b.T.Errorf("got %s; want %s\n%+v", strings.Join(got, "; "), want, views)
	}
}

// wantLine waits for a line in the log of the deployment.
func (b *boshDaemon) wantLine(text string) {
	b.T.Helper()
	e2e.Eventually(b.T, time.Minute, func() string {
		out, err := b.Run("deployment", "logs", b.name)
		if err != nil || !strings.Contains(out, text) {
			return fmt.Sprintf("the log has no %q: %v\n%s", text, err, out)
		}
		return ""
	})
}

// TestDeployment takes a deployment of two linked servers, with a generated
// password and certificates, errands and disks, through its life.
func TestDeployment(t *testing.T) {
	t.Parallel()
	binary := e2e.NeedBinary(t)
	b := &boshDaemon{registry: e2e.StartRegistry(t), name: "nats-deployment", manifest: "testdata/nats.yml"}
	b.registry.Push(t, "test-1-1", v1.Config{}, releaseImage(t))
	b.Daemon = e2e.StartDaemon(t, binary)

	b.must(b.deploy("[]"))
	const up = "nats/0 running; nats/1 running; setup/0 stopped; smoke-tests/0 stopped"
	b.wantInstances(up)
	b.wantLine("setting up version 1")
	b.wantLine("patched for nats-deployment")
	e2e.Eventually(t, time.Minute, func() string {
		if _, now := b.instances(); now[0].Processes[0].Role != "active" {
			return fmt.Sprintf("nats/0 is %q; want it active", now[0].Processes[0].Role)
		}
		return ""
	})
	b.wantLine("[nats/1 nats/server]")
	b.wantLine("[nats/1 CELL] Cell cupola successfully created container")
	b.must(b.Run("deployment", "run-errand", "nats-deployment", "smoke-tests"))
	b.wantLine("all 4 connections hear each other")

	b.entered(t)
	b.unknownNames()
	b.must(b.Run("deployment", "restart", "nats-deployment", "nats/1"))
	b.wantLine("start 2 of 1, 2 with this ephemeral disk")
	b.must(b.Run("deployment", "recreate", "nats-deployment", "nats/1"))
	b.wantLine("start 3 of 1, 1 with this ephemeral disk")

	_, before := b.instances()
	if out := b.must(b.deploy("[]")); strings.Contains(out, "Updating instance") {
		t.Errorf("got %s; want nothing done for the same manifest", out)
	}
	out, err := b.deploy(change("broken", true))
	if err == nil || !strings.Contains(out, "is not running after update. Review logs for failed jobs: nats") {
		t.Errorf("got %v\n%s\nwant the canary's failure", err, out)
	}
	if _, now := b.instances(); now[1].State != "running" || now[1].UpToDate || now[1].Address != before[1].Address {
		t.Errorf("got %+v; want the second instance untouched", now[1])
	}
	if out, err := b.deploy("[]", "--rotate", "nats_pasword"); err == nil || !strings.Contains(out, `cannot rotate variable "nats_pasword": it is not declared (did you mean "nats_password"?)`) || strings.Contains(out, "Task ") {
		t.Errorf("got %v\n%s\nwant a name that is no variable's refused", err, out)
	}
	b.must(b.deploy(change("version", 2)))
	b.wantInstances(up)
	b.wantLine("draining 1: job_changed")

	b.killedHalfWay(t)
	b.wantInstances(up)
	b.rendered(t)
	b.redacted(t)
	b.must(b.Run("deployment", "run-errand", "nats-deployment", "smoke-tests"))

	b.must(b.deploy(`[{"type": "replace", "path": "/instance_groups/name=nats/instances", "value": 1}]`))
	b.wantInstances("nats/0 running; setup/0 stopped; smoke-tests/0 stopped")
	b.wantLine("draining 1: job_shutdown")
	b.must(b.Run("deployment", "delete", "nats-deployment"))
	if out := b.must(b.Run("deployment", "disks")); strings.Count(out, "orphaned") != 2 {
		t.Errorf("got %s; want the disks of both instances kept", out)
	}
	b.must(b.deploy(`[{"type": "replace", "path": "/instance_groups/name=nats/persistent_disk", "value": 48}]`))
	b.wantLine("start 6 of 0") // it finds its disk again, and has it grow: v1, broken, v2, v3, one instance, now
	if out, err := b.deploy("[]"); err == nil || !strings.Contains(out, "/instance_groups/name=nats/persistent_disk: the disk has 48 MB and cannot become smaller, 32 MB") {
		t.Errorf("got %v\n%s\nwant a smaller disk refused", err, out)
	}
	b.must(b.Run("deployment", "delete", "nats-deployment", "--delete-disks"))
	if out := b.must(b.Run("deployment", "disks")); strings.Contains(out, "nats/0") {
		t.Errorf("got %s; want the disk of nats/0 gone", out)
	}
}

// unknownNames asks for what the deployment does not have.
func (b *boshDaemon) unknownNames() {
	b.T.Helper()
	for want, args := range map[string][]string{
		`Errand 'smoke-test' doesn't exist (did you mean "smoke-tests"?)`: {"run-errand", "nats-deployment", "smoke-test"},
		`(did you mean "nats"?)`:                   {"restart", "nats-deployment", "nast"},
		"the last instance of the group is nats/1": {"stop", "nats-deployment", "nats/2"},
	} {
		if out, err := b.Run(append([]string{"deployment"}, args...)...); err == nil || !strings.Contains(out, want) || strings.Contains(out, "Task ") {
			b.T.Errorf("%v: got %v\n%s\nwant it refused: %s", args, err, out, want)
		}
	}
}

// killedHalfWay kills the daemon in the middle of an update, which the next one
// finishes.
func (b *boshDaemon) killedHalfWay(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.Binary, b.deployArgs(change("version", 3), "deploy")...)
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+b.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, time.Minute, func() string {
		if _, now := b.instances(); now[0].State != "running" {
			return ""
		}
		return "the update does not begin"
	})
	b.Kill()
	_ = cmd.Wait() // its daemon is gone
	b.Start()
	var tasks []struct{ ID int }
	b.API("GET", "/v1/deployment_tasks", nil, &tasks)
	b.must(b.Run("deployment", "task", fmt.Sprint(tasks[0].ID)))
}

// rendered writes the deployment for Kubernetes: without secrets, and with them
// for its owner alone.
func (b *boshDaemon) rendered(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.yml")
	args := b.deployArgs("[]", "render")
	b.must(b.Run(append(args, "--output", file, "--namespace", "nats")...))
	objects := func(mode fs.FileMode) (all []kube.Object) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err == nil {
			all, err = kube.Read(bytes.NewReader(text))
		}
		info, serr := os.Stat(file)
		if err != nil || serr != nil || info.Mode().Perm() != mode {
			t.Fatalf("got mode %v, %v, %v; want %v", info.Mode(), err, serr, mode)
		}
		return all
	}
	known := kube.KnownOf(objects(0o644))
	b.must(b.Run(append(args, "--output", file, "--with-secrets")...))
	kinds := map[string]string{}
	for _, o := range objects(0o600) {
		kinds[o.Name()] = o.Kind()
		if o.Kind() == "Secret" && len(o.Map("data")) == 0 {
			t.Errorf("Secret %s has no values", o.Name())
		}
	}
	for name, kind := range map[string]string{"nats-deployment-nats-v1": "StatefulSet", "nats-deployment-smoke-tests": "CronJob", "nats-deployment-nats-1": "Service", "nats-deployment.jobs.nats-v1": "Secret"} {
		if kinds[name] != kind {
			t.Errorf("%s is a %q; want a %s", name, kinds[name], kind)
		}
	}
	if diff := cmp.Diff(known, kube.KnownOf(objects(0o600))); diff != "" {
		t.Errorf("nothing has changed, but:\n%s", diff)
	}
}

// redacted takes a password in clear in the manifest: no output shows it unless
// asked for secrets.
func (b *boshDaemon) redacted(t *testing.T) {
	t.Helper()
	const secret = "in-the-manifest"
	ops := change("nats/password", secret)
	env := change("quarks/envs", []e2e.Doc{{"name": "OF_PASSWORD", "value": "of-" + secret}})
	var both []any
	for _, text := range []string{ops, env} {
		var one []any
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			t.Fatal(err)
		}
		both = append(both, one...)
	}
	text, _ := json.Marshal(both)
	for verb, flags := range map[string][]string{"diff": nil, "deploy": {"--dry-run"}, "render": nil} {
		args := append(b.deployArgs(string(text), verb), flags...)
		hidden, _ := b.Run(args...) // diff exits with 2
		if strings.Contains(hidden, secret) || !strings.Contains(hidden, "<redacted>") && !strings.Contains(hidden, "REPLACE") {
			t.Errorf("%s shows the password, or nothing in its place:\n%s", verb, hidden)
		}
		if verb == "render" {
			continue // --with-secrets has it encoded
		}
		if shown, _ := b.Run(append(args, "--with-secrets")...); !strings.Contains(shown, secret) {
			t.Errorf("%s --with-secrets does not show the password:\n%s", verb, shown)
		}
	}
}
