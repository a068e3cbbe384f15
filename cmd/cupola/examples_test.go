package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestExamples pushes every sample app from source, and takes it through its
// life: answered, logged, scaled, crashed, restarted by the crash policy,
// deleted.
func TestExamples(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
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
	} {
		t.Run(c.dir, func(t *testing.T) {
			d := d.on(t)
			out, err := d.run("push", example(t, c.dir))
			if err != nil {
				t.Fatalf("push: %v\n%s", err, out)
			}
			d.running(c.app, "web", 1)
			d.answers(c.app, c.says)
			if c.crashes {
				d.crashAndReturn(c.app)
			}
			d.scaleTo(c.app, 3)
			d.deleted(c.app)
		})
	}
}

func (d *daemon) answers(app, says string) {
	d.t.Helper()
	eventually(d.t, 10*time.Second, func() string {
		status, body, err := d.get(app+".localhost", "/")
		if err == nil && status == 200 && strings.Contains(body, says) {
			return ""
		}
		return body
	})
}

// crashAndReturn crashes the only instance, and waits for the one that Diego's
// policy starts at once in its place.
func (d *daemon) crashAndReturn(app string) {
	d.t.Helper()
	before := d.running(app, "web", 1)[0]
	if _, _, err := d.get(app+".localhost", "/crash"); err != nil {
		d.t.Fatal(err)
	}
	eventually(d.t, 30*time.Second, func() string {
		now := d.stats(app, "web")
		if len(now) == 1 && now[0].State == "RUNNING" && now[0].InstanceGUID != before.InstanceGUID {
			return ""
		}
		return "the crashed instance was not replaced"
	})
	d.logged(app, "was asked to crash")
	d.logged(app, "Exit status 1")
	var events struct{ Resources []struct{ Type string } }
	d.api("GET", "/v3/audit_events?types=app.crash&target_guids="+d.app(app), nil, &events)
	if len(events.Resources) != 1 {
		d.t.Errorf("got %d app.crash events; want 1", len(events.Resources))
	}
}

// scaleTo scales, and waits until every instance was seen to answer.
func (d *daemon) scaleTo(app string, n int) {
	d.t.Helper()
	d.api("POST", "/v3/apps/"+d.app(app)+"/processes/web/actions/scale", doc{"instances": n}, nil)
	hosts := map[string]bool{}
	for _, i := range d.running(app, "web", n) {
		hosts[i.Host] = true
	}
	if len(hosts) != n {
		d.t.Errorf("got %d addresses of %d instances", len(hosts), n)
	}
}

// deleted deletes the app, and waits until its host leads nowhere.
func (d *daemon) deleted(app string) {
	d.t.Helper()
	d.api("DELETE", "/v3/apps/"+d.app(app), nil, nil)
	eventually(d.t, 10*time.Second, func() string {
		if status, body, _ := d.get(app+".localhost", "/"); status != 404 {
			return body
		}
		return ""
	})
}

func TestWebsocketAndWorker(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	for _, dir := range []string{"websocket", "procfile"} {
		if out, err := d.run("push", example(t, dir)); err != nil {
			t.Fatalf("push: %v\n%s", err, out)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	d.running("hello-websocket", "web", 1)
	c, _, err := websocket.Dial(ctx, "ws://"+d.addr+"/ws", &websocket.DialOptions{Host: "hello-websocket.localhost"})
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
	d.api("POST", "/v3/apps/"+d.app("hello-procfile")+"/processes/worker/actions/scale", doc{"instances": 1}, nil)
	d.running("hello-procfile", "worker", 1)
	var task struct{ GUID, State string }
	d.api("POST", "/v3/apps/"+d.app("hello-procfile")+"/tasks", doc{"command": "echo task says hello"}, &task)
	eventually(t, 20*time.Second, func() string {
		d.api("GET", "/v3/tasks/"+task.GUID, nil, &task)
		if task.State == "SUCCEEDED" {
			return ""
		}
		return "the task is " + task.State
	})
	d.logged("hello-procfile", "task says hello")
}
