package push

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cupola/test/e2e"
)

// TestExamples pushes every sample app from source, and takes it through its
// life: answered, logged, scaled, crashed, restarted by the crash policy,
// deleted.
func TestExamples(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	for _, c := range []struct {
		dir, app string
		says     string // in the page
		crashes  bool   // has /crash
	}{
		{"static", "hello-static", "<html", false},
		{"demo", "demo", "<html", false},
		{"go", "hello-go", "hello from hello-go", true},
		{"node", "hello-node", "hello from hello-node", true},
		{"python", "hello-python", "hello from hello-python", true},
		{"ruby", "hello-ruby", "hello from hello-ruby", true},
		{"procfile", "hello-procfile", "hello from hello-procfile", true},
		{"websocket", "hello-websocket", "hello from hello-websocket", true},
		{"java", "hello-java", "hello from hello-java", true},
		{"nginx", "hello-nginx", "hello from hello-nginx", false},
		{"dotnet", "hello-dotnet", "hello from hello-dotnet", true},
	} {
		t.Run(c.dir, func(t *testing.T) {
			t.Parallel()
			d := d.On(t)
			out, err := d.Run("push", builtExample(t, c.dir))
			if err != nil {
				t.Fatalf("push: %v\n%s", err, out)
			}
			d.Running(c.app, "web", 1)
			d.Answers(c.app, c.says)
			if c.crashes {
				crashAndReturn(d, c.app)
			}
			d.ScaleTo(c.app, 3)
			d.Deleted(c.app)
		})
	}
}

// builtExample is the directory of a sample app, with what has to be built before a push. It skips where a program of this machine is
// missing, which the app needs on the stack host. But for `make test-all`, that in Go is one that takes less time to compile.
func builtExample(t *testing.T, name string) string {
	t.Helper()
	for _, program := range map[string][]string{"java": {"/usr/bin/javac", "/usr/bin/java"}, "nginx": {"/usr/sbin/nginx"}, "dotnet": {"/usr/bin/dotnet"}}[name] {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	dir := e2e.Example(t, name)
	if name == "go" && !e2e.Thorough() {
		return filepath.Join("testdata", "smallgo")
	}
	var arguments []string
	switch name {
	default:
		return dir
	case "java":
	case "dotnet":
		arguments = append(arguments, "-p:TargetFramework="+dotnetTarget(t))
	}
	return e2e.BuiltExample(t, name, arguments...)
}

// dotnetTarget is what the SDK of this machine builds for without a package from elsewhere: its own version.
func dotnetTarget(t *testing.T) string {
	t.Helper()
	version, err := exec.Command("dotnet", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	major, minor, _ := strings.Cut(string(version), ".")
	minor, _, _ = strings.Cut(minor, ".")
	if major == "3" {
		return "netcoreapp3." + minor
	}
	return "net" + major + "." + minor
}

// crashAndReturn crashes the only instance, and waits for the one that Diego's
// policy starts at once in its place.
func crashAndReturn(d *e2e.Daemon, app string) {
	d.T.Helper()
	before := d.Running(app, "web", 1)[0]
	if _, _, err := d.Get(app+".localhost", "/crash"); err != nil {
		d.T.Fatal(err)
	}
	e2e.Eventually(d.T, time.Minute, func() string {
		now := d.Stats(app, "web")
		if len(now) == 1 && now[0].State == "RUNNING" && now[0].InstanceGUID != before.InstanceGUID {
			return ""
		}
		return "the crashed instance was not replaced"
	})
	d.Logged(app, "was asked to crash")
	d.Logged(app, "Exit status 1")
	var events struct{ Resources []struct{ Type string } }
	d.API("GET", "/v3/audit_events?types=app.crash&target_guids="+d.App(app), nil, &events)
	if len(events.Resources) != 1 {
		d.T.Errorf("got %d app.crash events; want 1", len(events.Resources))
	}
}

func TestWebsocketAndWorker(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	for _, dir := range []string{"websocket", "procfile"} {
		if out, err := d.Run("push", e2e.Example(t, dir)); err != nil {
			t.Fatalf("push: %v\n%s", err, out)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d.Running("hello-websocket", "web", 1)
	c, _, err := websocket.Dial(ctx, "ws://"+d.Addr+"/ws", &websocket.DialOptions{Host: "hello-websocket.localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(ctx, websocket.MessageText, []byte("through the router")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := c.Read(ctx); err != nil || !strings.Contains(string(got), "through the router") {
		t.Fatalf("got %q, %v; want the echo", got, err)
	}
	d.API("POST", "/v3/apps/"+d.App("hello-procfile")+"/processes/worker/actions/scale", e2e.Doc{"instances": 1}, nil)
	d.Running("hello-procfile", "worker", 1)
	var task struct{ GUID, State string }
	d.API("POST", "/v3/apps/"+d.App("hello-procfile")+"/tasks", e2e.Doc{"command": "echo task says hello"}, &task)
	e2e.Eventually(t, time.Minute, func() string {
		d.API("GET", "/v3/tasks/"+task.GUID, nil, &task)
		if task.State == "SUCCEEDED" {
			return ""
		}
		return "the task is " + task.State
	})
	d.Logged("hello-procfile", "task says hello")
}
