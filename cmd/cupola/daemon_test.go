package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// needBinary skips a test where the built daemon cannot be driven.
func needBinary(t testing.TB) string {
	t.Helper()
	binary := os.Getenv("CUPOLA")
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" || binary == "" {
		t.Skip("needs CUPOLA_TEST_ROOT=1, root, and CUPOLA=the built binary: run make e2e")
	}
	return binary
}

// daemon is a running `cupola serve`.
type daemon struct {
	t      testing.TB
	binary string
	dir    string
	addr   string // host:port of the HTTP listener
	flags  []string
	cmd    *exec.Cmd
	log    *logBuffer
	admin  *adminSession
	// rebooted is a daemon for which the machine has booted since the data
	// directory was last in use.
	rebooted bool
}

// logBuffer gathers what the daemon logs.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// on is the same daemon, for a subtest to use.
func (d *daemon) on(t testing.TB) *daemon {
	other := *d
	other.t = t
	return &other
}

const adminPassword = "a-password-for-tests"

// startDaemon runs a daemon with flags on a directory of its own, and takes all
// of it down when the test ends.
func startDaemon(t testing.TB, binary string, flags ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, binary: binary, dir: newDaemonDir(t), addr: "127.0.0.1:0", flags: flags, log: &logBuffer{}, admin: &adminSession{}}
	t.Cleanup(d.destroy)
	d.start()
	return d
}

// daemonDir begins the names of daemons' directories.
const daemonDir = "cupola-e2e-"

// newDaemonDir makes a data directory. Containers reach their roots through it,
// so it can't be one of t.TempDir, which is 0700 above.
func newDaemonDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", daemonDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

var apiLine = regexp.MustCompile(`API +http://[^:]+:(\d+)`)

// start starts the daemon; after the first time, on the same port.
func (d *daemon) start() {
	d.t.Helper()
	flags := []string{"serve", "--data-dir", d.dir, "--http", d.addr, "--https", "off", "--allow-loopback", "--admin-password", adminPassword}
	d.cmd = exec.Command(d.binary, append(flags, d.flags...)...)
	if d.rebooted {
		d.cmd = inNewBoot(d.cmd)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	d.cmd.Stderr = d.log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	port := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := apiLine.FindStringSubmatch(lines.Text()); m != nil {
				port <- m[1]
			}
		}
		close(port)
	}()
	select {
	case p, ok := <-port:
		if !ok {
			d.t.Fatalf("the daemon did not start:\n%s", d.log)
		}
		d.addr = "127.0.0.1:" + p
	case <-time.After(2 * time.Minute): // emulated processors take their time
		d.t.Fatalf("the daemon was not ready after 2 minutes:\n%s", d.log)
	}
}

// kill ends the daemon as a power cut would.
func (d *daemon) kill() {
	d.cmd.Process.Kill()
	d.cmd.Wait()
}

func (d *daemon) destroy() {
	if d.t.Failed() {
		d.t.Logf("the daemon's log:\n%s", d.log)
	}
	d.kill()
	if out, err := exec.Command(d.binary, "cleanup", "--data-dir", d.dir).CombinedOutput(); err != nil {
		d.t.Errorf("cupola cleanup: %v\n%s", err, out)
	}
	checkLeaks(d.t, d.binary, d.dir)
	if err := os.RemoveAll(d.dir); err != nil {
		d.t.Error(err)
	}
}

// run runs cupola with the daemon as its target.
func (d *daemon) run(args ...string) (string, error) {
	cmd := exec.Command(d.binary, args...)
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+d.addr, "CUPOLA_PASSWORD="+adminPassword)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// adminSession is the admin's, kept for as long as its token is surely good: a
// password takes longer to check than most of what is asked.
type adminSession struct {
	mu     sync.Mutex
	client *client
	since  time.Time
}

// client is a client of the daemon's API, as admin.
func (d *daemon) client() *client {
	d.t.Helper()
	s := d.admin
	s.mu.Lock()
	defer s.mu.Unlock()
	if api := "http://" + d.addr; s.client == nil || s.client.api != api || time.Since(s.since) > 5*time.Minute {
		c, err := login(context.Background(), api, "admin", adminPassword)
		if err != nil {
			d.t.Fatal(err)
		}
		s.client, s.since = c, time.Now()
	}
	return s.client
}

// api makes a call and decodes its answer.
func (d *daemon) api(method, path string, body any, out any) {
	d.t.Helper()
	if err := d.client().call(context.Background(), method, path, body, out); err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// app gives the GUID of an app.
func (d *daemon) app(name string) string {
	d.t.Helper()
	guid, err := d.client().first(context.Background(), "app "+name, "/v3/apps?names="+url.QueryEscape(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return guid
}

// get asks an app by its host.
func (d *daemon) get(host, path string) (status int, body string, err error) {
	req, err := http.NewRequest("GET", "http://"+d.addr+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Host = host
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// eventually waits until f gives "", and fails with what it gave last.
func eventually(t testing.TB, within time.Duration, f func() string) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		problem := f()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", within, problem)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// instance is what the stats say of one instance.
type instance struct {
	Index        int
	State        string
	Host         string
	InstanceGUID string `json:"instance_guid"`
	Uptime       int
	Bindings     struct {
		Revision string
		Current  bool
	}
}

func (d *daemon) stats(app, process string) []instance {
	d.t.Helper()
	var stats struct{ Resources []instance }
	d.api("GET", "/v3/apps/"+d.app(app)+"/processes/"+process+"/stats", nil, &stats)
	return stats.Resources
}

// running waits until n instances of a process run.
func (d *daemon) running(app, process string, n int) []instance {
	d.t.Helper()
	var last []instance
	eventually(d.t, 60*time.Second, func() string {
		last = d.stats(app, process)
		have := 0
		for _, i := range last {
			if i.State == "RUNNING" {
				have++
			}
		}
		if have == n && len(last) == n {
			return ""
		}
		return fmt.Sprintf("%d instances of %s run, want %d: %+v", have, app, n, last)
	})
	return last
}

// log waits until an app's log has a line with the text.
func (d *daemon) logged(app, text string) {
	d.t.Helper()
	guid := d.app(app)
	p := &pusher{client: d.client()}
	eventually(d.t, 20*time.Second, func() string {
		lines, _ := p.lines(context.Background(), guid, 0)
		for _, l := range lines {
			if strings.Contains(l, text) {
				return ""
			}
		}
		b, _ := json.Marshal(lines)
		return fmt.Sprintf("the log has no %q: %s", text, b)
	})
}

func example(t testing.TB, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("../../examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
