package examples

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what takes a moment where the machine is idle.
const patience = 5 * time.Minute

// process is one example app that runs on a loopback port as a platform would run it.
type process struct {
	addr   string
	cmd    *exec.Cmd
	stdout *output
	stderr *output
}

// output collects the lines of a stream.
type output struct {
	mu    sync.Mutex
	lines []string
	added chan struct{} // holds one when lines came since it was last emptied
	ended chan struct{}
}

func collect(stream io.Reader) *output {
	o := &output{added: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		for scanner := bufio.NewScanner(stream); scanner.Scan(); {
			o.mu.Lock()
			o.lines = append(o.lines, scanner.Text())
			o.mu.Unlock()
			select {
			case o.added <- struct{}{}:
			default:
			}
		}
	}()
	return o
}

func (o *output) has(part string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, line := range o.lines {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}

// await waits for a line that contains part.
func (o *output) await(t *testing.T, part string) {
	t.Helper()
	deadline := time.After(patience)
	for !o.has(part) {
		select {
		case <-o.added:
		case <-o.ended:
			if !o.has(part) {
				t.Fatalf("output ended without %q: %q", part, o.lines)
			}
		case <-deadline:
			t.Fatalf("no line with %q after %s", part, patience)
		}
	}
}

// start runs the command in dir and waits until it says that it is ready. It is killed at the end of the test.
func start(t *testing.T, dir, ready string, argv ...string) *process {
	t.Helper()
	tool, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skipf("needs %s", argv[0])
	}
	if tool, err = filepath.Abs(tool); err != nil {
		t.Fatal(err)
	}
	p := &process{addr: freeAddress(t)}
	_, port, _ := net.SplitHostPort(p.addr)
	p.cmd = exec.Command(tool, argv[1:]...)
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), "PORT="+port, "VCAP_APP_HOST=127.0.0.1", "CF_INSTANCE_INDEX=2", "MEMORY_LIMIT=64m",
		`VCAP_APPLICATION={"application_name":"sample <1>"}`, "DOOR_TOKEN=open sesame", "PYTHONDONTWRITEBYTECODE=1")
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.stdout, p.stderr = collect(stdout), collect(stderr)
	p.stdout.await(t, ready)
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// exitCode waits for the end of the process.
func (p *process) exitCode(t *testing.T) int {
	t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	<-p.stdout.ended
	<-p.stderr.ended
	_ = p.cmd.Wait() // its code says it all
	return p.cmd.ProcessState.ExitCode()
}

// fetch makes one request on a new connection and returns status, content type and body.
func (p *process) fetch(t *testing.T, method, path, accept string) response {
	t.Helper()
	got, err := p.request(method, path, accept)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// response is what the tests look at.
type response struct {
	Status int
	Kind   string
	Body   string
}

func (p *process) request(method, path, accept string) (response, error) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest(method, "http://"+p.addr+path, nil)
	if err != nil {
		return response{}, err
	}
	req.Header.Set("Accept", accept)
	res, err := client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return response{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return response{Status: res.StatusCode, Kind: res.Header.Get("Content-Type"), Body: string(body)}, nil
}
