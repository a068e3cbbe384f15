package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"cupola/test/loopback"
)

// app is a droplet's process, started by the launcher.
type app struct {
	t    *testing.T
	cmd  *exec.Cmd
	port int
	out  output
}

// output collects what a process prints while it runs.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start runs command (empty takes the droplet's) in the unpacked home.
func start(t *testing.T, home, command string, env ...string) *app {
	t.Helper()
	a := &app{t: t, port: loopback.FreePorts(t, 1)[0]}
	a.cmd = exec.Command(filepath.Join(programsDir, "init"), "--", filepath.Join(programsDir, "launcher"), "app", command, "")
	a.cmd.Dir = home
	a.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "PORT=" + strconv.Itoa(a.port), "LANG=C.UTF-8"}, env...)
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.out
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-a.cmd.Process.Pid, syscall.SIGKILL)
		_ = a.cmd.Wait()
	})
	return a
}

func (a *app) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", a.port, path) }

// get fetches a path, waiting for the app to listen.
func (a *app) get(path string) (int, string) {
	a.t.Helper()
	url := a.url(path)
	deadline := time.Now().Add(time.Minute)
	for {
		res, err := http.Get(url)
		if err == nil {
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				a.t.Fatal(err)
			}
			return res.StatusCode, string(body)
		}
		if time.Now().After(deadline) || a.ended() {
			a.t.Fatalf("GET %s: %v\n%s", url, err, a.out.String())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// ended reports whether the process has exited and nothing has waited for it yet.
func (a *app) ended() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.cmd.Process.Pid))
	return err == nil && bytes.Contains(stat, []byte(") Z "))
}
