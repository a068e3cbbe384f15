package images

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// examplesOfAll are those that every cell runs, with what their page says.
var examplesOfAll = []struct{ name, says string }{
	{"node", "hello from"}, {"static", "<!doctype html>"}, {"python", "hello from"}, {"ruby", "hello from"}, {"php", "hello from"}, {"nginx", "<!doctype html>"},
	{"go", "hello from"}, {"procfile", "hello from"}, {"websocket", "hello from"}, {"java", "hello from"},
}

// TestAppOnKubernetesCellAsHere goes through the life of apps by the official CLI, with one script on this machine's cell and
// then on a cluster's. It downloads toolchains: make test-all runs it.
func TestAppOnKubernetesCellAsHere(t *testing.T) {
	if !e2e.Thorough() {
		t.Skip("set CUPOLA_TEST_ALL to download toolchains")
	}
	for _, program := range []string{"cf", "javac"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	registry := freeAddress(t, n.Host())
	d := e2e.StartDaemon(t, binary, "--kubernetes", "edge="+n.Account(), "--kubernetes-registry", registry)
	n.Trust(registry, filepath.Join(d.Dir, "ca.pem"))
	if out, err := d.Run("stack", "build", "debian12", "--name", "full", "--with", "node,python,ruby,php,nginx,go,java", "--data-dir", d.Dir); err != nil {
		t.Fatalf("stack build: %v\n%s", err, out)
	}
	s := script{t: t, d: d, n: n, home: t.TempDir()}
	s.cf("api", d.Client().API)
	s.cf("auth", "admin", e2e.AdminPassword)
	s.cf("target", "-o", "cupola", "-s", "dev")
	for _, cell := range []string{"cupola", "edge"} {
		if cell == "edge" {
			placeOn(d, cell)
		}
		t.Run(cell, func(t *testing.T) {
			s := script{t: t, d: d.On(t), n: n, home: s.home, cell: cell}
			s.pushAll()
			s.run("x-node")
			s.bind("x-node")
			s.cf("delete", "-f", "-r", "x-node")
		})
	}
}

// script is what is done on each cell.
type script struct {
	t          *testing.T
	d          *e2e.Daemon
	n          *kubetest.Node
	home, cell string
}

// cf runs the official CLI.
func (s script) cf(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("cf", args...)
	cmd.Env = append(os.Environ(), "CF_HOME="+s.home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("cf %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// pushAll pushes the examples, and leaves the first one.
func (s script) pushAll() {
	s.t.Helper()
	for i, e := range examplesOfAll {
		began, app, dir := time.Now(), "x-"+e.name, e2e.Example(s.t, e.name)
		if e.name == "java" {
			dir = e2e.BuiltExample(s.t, e.name)
		}
		s.cf("push", app, "-p", dir, "-f", filepath.Join(dir, "manifest.yml"), "-s", "full")
		s.t.Logf("%s was pushed in %.1f s", e.name, time.Since(began).Seconds())
		s.d.Answers(app, e.says)
		s.isHere()
		if i > 0 {
			s.cf("delete", "-f", "-r", app)
		}
	}
}

// isHere wants containers on the script's cell, and none on the other one.
func (s script) isHere() {
	s.t.Helper()
	here, pods := s.d.Containers(), appPodNames(s.n)
	if (s.cell == "cupola") != (len(here) > 0) || (s.cell == "edge") != (len(pods) > 0) {
		s.t.Errorf("got containers %v and pods %v; want some on %s alone", here, pods, s.cell)
	}
}

// run scales an app, has an instance crash, replaces all under load, and runs a command, a task and what shows logs.
func (s script) run(app string) {
	s.t.Helper()
	began := time.Now()
	s.cf("scale", app, "-i", "10")
	was := e2e.GUIDs(s.d.Running(app, "web", 10))
	s.t.Logf("ten instances ran after %.1f s", time.Since(began).Seconds())
	began = time.Now()
	if status, _, err := s.d.Get(app+".localhost", "/crash"); err != nil || status != http.StatusOK {
		s.t.Errorf("/crash: %d, %v", status, err)
	}
	e2e.Eventually(s.t, kubetest.Patience, func() string {
		is := e2e.GUIDs(s.d.Running(app, "web", 10))
		if fresh := slices.DeleteFunc(is, func(guid string) bool { return slices.Contains(was, guid) }); len(fresh) != 1 {
			return fmt.Sprintf("%d instances were started after a crash; want one", len(fresh))
		}
		return ""
	})
	s.t.Logf("ten instances ran %.1f s after a crash", time.Since(began).Seconds())
	if events := s.cf("events", app); !strings.Contains(events, "audit.app.process.crash") {
		s.t.Errorf("cf events: got %s; want the crash", events)
	}
	s.logged(app, "was asked to crash", "GET /crash")
	s.roll(app)
	if out := s.cf("ssh", app, "-k", "-i", "3", "-c", "echo instance $CF_INSTANCE_INDEX of $(pwd)"); !strings.Contains(out, "instance 3 of /home/vcap") {
		s.t.Errorf("cf ssh: got %s", out)
	}
	s.cf("run-task", app, "--command", "echo the task says $((6*7))", "--wait")
	s.logged(app, "the task says 42")
}

// logged waits for texts in an app's log.
func (s script) logged(app string, texts ...string) {
	s.t.Helper()
	e2e.Eventually(s.t, kubetest.Patience, func() string {
		out := s.cf("logs", app, "--recent")
		for _, want := range texts {
			if !strings.Contains(out, want) {
				return fmt.Sprintf("cf logs: got %s; want %q", out, want)
			}
		}
		return ""
	})
}

// roll replaces ten instances while 200 requests come each second.
func (s script) roll(app string) {
	s.t.Helper()
	was, began := e2e.GUIDs(s.d.Running(app, "web", 10)), time.Now()
	traffic := s.d.Send(app+".localhost", 200)
	s.cf("restart", app, "--strategy", "rolling")
	if failed := traffic.End(s.t); len(failed) > 0 {
		s.t.Errorf("%d requests failed, the first one %+v", len(failed), failed[0])
	}
	s.t.Logf("ten instances were replaced in %.1f s", time.Since(began).Seconds())
	for _, guid := range e2e.GUIDs(s.d.Running(app, "web", 10)) {
		if slices.Contains(was, guid) {
			s.t.Errorf("instance %s was not replaced", guid)
		}
	}
}

// bind binds a service by files, which change under a running instance.
func (s script) bind(app string) {
	s.t.Helper()
	service := "db-" + s.cell
	s.cf("scale", app, "-i", "1")
	s.cf("create-user-provided-service", service, "-p", `{"user":"first"}`)
	s.cf("curl", "-X", "PATCH", "/v3/apps/"+s.d.App(app)+"/features/service-binding-k8s", "-d", `{"enabled":true}`)
	s.cf("bind-service", app, service)
	s.cf("restart", app)
	was := e2e.GUIDs(s.d.Running(app, "web", 1))
	for _, want := range []string{"first", "second"} {
		began := time.Now()
		s.cf("update-user-provided-service", service, "-p", `{"user":"`+want+`"}`)
		e2e.Eventually(s.t, 5*time.Minute, func() string {
			if out := s.cf("ssh", app, "-k", "-c", "cat $SERVICE_BINDING_ROOT/"+service+"/user"); strings.TrimSpace(out) != want {
				return fmt.Sprintf("the file has %q; want %s", out, want)
			}
			return ""
		})
		s.t.Logf("the file had %s after %.1f s", want, time.Since(began).Seconds())
	}
	if is := e2e.GUIDs(s.d.Running(app, "web", 1)); !slices.Equal(is, was) {
		s.t.Errorf("the instance is %v; want %v", is, was)
	}
}
