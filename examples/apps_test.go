package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// webApps are the examples that listen, and how to start them.
var webApps = []struct {
	dir  string
	argv []string
	slow bool // has /slow and /env
}{
	{dir: "go", slow: true},
	{dir: "node", argv: []string{"node", "server.js"}, slow: true},
	{dir: "python", argv: []string{"python3", "app.py"}, slow: true},
	{dir: "ruby", argv: []string{"ruby", "app.rb"}, slow: true},
	{dir: "procfile", argv: []string{"python3", "web.py"}},
	{dir: "websocket", argv: []string{"node", "server.js"}},
}

func TestWebApps(t *testing.T) {
	for _, app := range webApps {
		t.Run(app.dir, func(t *testing.T) {
			t.Parallel()
			argv := app.argv
			if app.dir == "go" {
				argv = []string{buildGo(t)}
			}
			p := start(t, app.dir, "listening on 127.0.0.1:", argv...)
			checkPages(t, p)
			if app.slow {
				checkEnvironment(t, p)
			}
			checkStop(t, p, app.slow)
			checkCrash(t, start(t, app.dir, "listening", argv...))
		})
	}
}

// buildGo builds the Go example as its buildpack does.
func buildGo(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "hello-go")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = "go"
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return binary
}

func checkPages(t *testing.T, p *process) {
	t.Helper()
	line := p.fetch(t, "GET", "/", "*/*")
	if !strings.HasPrefix(line.Body, "hello from sample <1>: instance 2, ") || strings.Count(line.Body, "\n") != 1 {
		t.Errorf("got %q for curl", line.Body)
	}
	page := p.fetch(t, "GET", "/", "text/html,*/*;q=0.8")
	if page.Kind != "text/html; charset=utf-8" || !strings.Contains(page.Body, "<h1>") || strings.Contains(page.Body, "sample <1>") {
		t.Errorf("got %s for a browser:\n%s", page.Kind, page.Body)
	}
	if css := p.fetch(t, "GET", "/style.css", "text/css"); css.Status != 200 || !strings.HasPrefix(css.Body, ":root") {
		t.Errorf("got %d for the stylesheet", css.Status)
	}
	text := "text/plain; charset=utf-8"
	if diff := cmp.Diff(response{200, text, "ok\n"}, p.fetch(t, "GET", "/health", "*/*")); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(response{404, text, ""}, p.fetch(t, "HEAD", "/nowhere", "*/*")); diff != "" {
		t.Errorf("unknown page (-want +got):\n%s", diff)
	}
	p.stdout.await(t, "HEAD /nowhere 404")
	p.stderr.await(t, "no such page: ")
	if p.stdout.has("/health") {
		t.Error("health checks are logged")
	}
}

func checkEnvironment(t *testing.T, p *process) {
	t.Helper()
	body := p.fetch(t, "GET", "/env", "*/*").Body
	if !strings.Contains(body, "\nMEMORY_LIMIT=64m\n") || !strings.Contains(body, "DOOR_TOKEN=(hidden)\n") {
		t.Errorf("got environment\n%s", body)
	}
}

// checkStop sends SIGTERM with a request in flight, which must still be answered.
func checkStop(t *testing.T, p *process, slow bool) {
	t.Helper()
	answered := make(chan error, 1)
	if slow {
		go func() {
			got, err := p.request("GET", "/slow?ms=800", "*/*")
			if err == nil && got.Body != "slept 800 ms\n" {
				t.Errorf("got %q", got.Body)
			}
			answered <- err
		}()
		p.stdout.await(t, "answering in 800 ms")
	} else {
		answered <- nil
	}
	p.terminate(t)
	if code := p.exitCode(t); code != 0 {
		t.Errorf("got exit code %d after SIGTERM; want 0: %q", code, p.stderr.lines)
	}
	if err := <-answered; err != nil {
		t.Errorf("request in flight: %v", err)
	}
	if !p.stdout.has("instance 2 stopping") {
		t.Errorf("no word of the stop: %q", p.stdout.lines)
	}
}

func checkCrash(t *testing.T, p *process) {
	t.Helper()
	if got := p.fetch(t, "POST", "/crash", "*/*"); got.Body != "crashing\n" {
		t.Errorf("got %+v", got)
	}
	if code := p.exitCode(t); code != 1 || !p.stderr.has("instance 2 was asked to crash") {
		t.Errorf("got exit code %d, %q; want 1", code, p.stderr.lines)
	}
}

func TestWorker(t *testing.T) {
	t.Parallel()
	p := start(t, "procfile", "worker 2: starting", "python3", "worker.py")
	p.terminate(t)
	if code := p.exitCode(t); code != 0 || !p.stderr.has("worker 2: stopped after ") {
		t.Errorf("got exit code %d, %q", code, p.stderr.lines)
	}
}

func TestFactors(t *testing.T) {
	t.Parallel()
	p := start(t, "procfile", "listening", "python3", "web.py")
	tests := map[string]string{
		"1": "1 = 1", "2": "2 is prime", "360": "360 = 2 × 2 × 2 × 3 × 3 × 5", "999999999989": "999999999989 is prime",
		"1000000000000": "1000000000000 = 2 × 2 × 2 × 2 × 2 × 2 × 2 × 2 × 2 × 2 × 2 × 2 × 5 × 5 × 5 × 5 × 5 × 5 × 5 × 5 × 5 × 5 × 5 × 5",
	}
	for number, want := range tests {
		got := p.fetch(t, "GET", "/?n="+number, "*/*").Body
		if got != "hello from sample <1>: instance 2, "+want+"\n" {
			t.Errorf("got %q for %s", got, number)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	p := start(t, "procfile", "of 60 seconds are prime", "python3", "report.py")
	if code := p.exitCode(t); code != 0 {
		t.Errorf("got exit code %d, %q", code, p.stderr.lines)
	}
}
