package monit

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/contract"
)

// world is a directory for pidfiles, and a check whose programs are scripts of a shell.
type world struct {
	*testing.T
	dir string
}

func newWorld(t *testing.T) world { return world{t, t.TempDir()} }

func (w world) path(name string) string { return filepath.Join(w.dir, name) }

// check leaves a process behind that writes its number to the pidfile, and notes starts and stops in the file log.
func (w world) check(name string, depends ...string) contract.MonitCheck {
	script := func(text string) contract.MonitProgram {
		return contract.MonitProgram{Args: []string{"/bin/sh", "-c", text, name}, Timeout: 20 * time.Second}
	}
	return contract.MonitCheck{
		Name: name, Pidfile: w.path(name + ".pid"), Depends: depends,
		Start: script(fmt.Sprintf(`cd %s; echo start $0 >> log; sleep 600 & echo $! > $0.pid`, w.dir)),
		Stop:  script(fmt.Sprintf(`cd %s; echo stop $0 >> log; kill $(cat $0.pid); rm $0.pid`, w.dir)),
	}
}

// log waits until the log is a text.
func (w world) log(want string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	got := []byte(nil)
	if !until(ctx, func() bool { got, _ = os.ReadFile(w.path("log")); return string(got) == want }) {
		w.Fatal(cmp.Diff(want, string(got)))
	}
}

// supervise runs a supervisor; end ends it, and waits for that.
func (w world) supervise(checks ...contract.MonitCheck) (end func()) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error)
	s := &supervisor{checks: checks, pause: 50 * time.Millisecond, say: w.Logf}
	go func() { done <- s.run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	}
}

func TestSupervisor(t *testing.T) {
	w := newWorld(t)
	stale := w.path("db.pid")
	if err := os.WriteFile(stale, fmt.Appendln(nil, os.Getpid()), 0o600); err != nil { // of an earlier container
		t.Fatal(err)
	}
	db, janitor := w.check("db"), w.check("janitor", "db")
	end := w.supervise(db, janitor)
	w.log("start db\nstart janitor\n")
	if err := summary([]contract.MonitCheck{db, janitor}); err != nil {
		t.Error(err)
	}
	n, alive := pid(db)
	if !alive || n == os.Getpid() {
		t.Fatalf("got %d, %t; want another process", n, alive)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.log("start db\nstart janitor\nstop janitor\nstart db\nstart janitor\n")
	end()
	w.log("start db\nstart janitor\nstop janitor\nstart db\nstart janitor\nstop janitor\nstop db\n")
	if err := summary([]contract.MonitCheck{db}); err == nil || !strings.Contains(err.Error(), "process db does not run") {
		t.Errorf("got %v; want that it does not run", err)
	}
}

// TestStartProgramThatGoesOn makes a start program become the process, and no second one started while it has not written its pidfile.
func TestStartProgramThatGoesOn(t *testing.T) {
	w := newWorld(t)
	c := w.check("slow")
	c.Start.Timeout = 100 * time.Millisecond
	c.Start.Args[2] = fmt.Sprintf("cd %s; echo start $0 >> log; while [ ! -e go ]; do sleep 0.1; done; echo $$ > $0.pid; echo on >> log; exec sleep 600", w.dir)
	c.Stop = contract.MonitProgram{} // then it gets SIGTERM
	end := w.supervise(c)
	w.log("start slow\n")
	time.Sleep(500 * time.Millisecond) // several looks
	if err := os.WriteFile(w.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.log("start slow\non\n")
	end()
	if _, err := os.Stat(c.Pidfile); !os.IsNotExist(err) {
		t.Errorf("got %v; want the pidfile removed", err)
	}
}

// A start program that failed is started again at the next look, not after its time.
func TestStartProgramThatFails(t *testing.T) {
	w := newWorld(t)
	c := w.check("a")
	c.Start.Timeout = time.Hour
	c.Start.Args[2] = `cd ` + w.dir + `; echo try $0 >> log; [ -e tried ] || { touch tried; exit 1; }; sleep 600 & echo $! > $0.pid; echo start $0 >> log`
	end := w.supervise(c)
	w.log("try a\ntry a\nstart a\n")
	end()
	w.log("try a\ntry a\nstart a\nstop a\n")
}

func TestProgramsRunAs(t *testing.T) {
	cmd, err := command(contract.MonitProgram{Args: []string{"/bin/true"}, User: "root", Group: "0"})
	if err != nil || cmd.SysProcAttr.Credential.Uid != 0 || cmd.SysProcAttr.Credential.Gid != 0 || !cmd.SysProcAttr.Setsid {
		t.Errorf("got %+v, %v", cmd.SysProcAttr, err)
	}
	if diff := cmp.Diff([]string{path}, cmd.Env); diff != "" {
		t.Error(diff)
	}
	if _, err := command(contract.MonitProgram{Args: []string{"/bin/true"}, User: "nobody-of-this-name"}); err == nil {
		t.Error("got no error for an unknown user")
	}
}

func TestVerbs(t *testing.T) {
	text, err := json.Marshal([]contract.MonitCheck{newWorld(t).check("a")})
	if err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"usage: ":                {"start"},
		"read checks":            {contract.MonitRun, "/", "x"},
		"process a does not run": {contract.MonitSummary, string(text)},
	} {
		if _, err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v; want %s", args, err, want)
		}
	}
}

// TestInstall copies a tree as the daemon makes them, keeps what scripts changed in it, and replaces it for other files.
func TestInstall(t *testing.T) {
	w := newWorld(t)
	from, to := w.path("from"), w.path("to")
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	tree := func(conf string) {
		if err := os.RemoveAll(from); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{"..one/monit": "m", "bin/..two/ctl": "#!/bin/sh", "config/..three/a/b.conf": conf} {
			at := filepath.Join(from, name)
			mode := fs.FileMode(0o440)
			if strings.Contains(name, "bin") {
				mode = 0o550
			}
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(content), mode); err != nil {
				t.Fatal(err)
			}
		}
		for name, to := range map[string]string{
			"..data": "..one", "monit": "..data/monit", "bin/..data": "..two", "bin/ctl": "..data/ctl", "config/..data": "..three", "config/a": "..data/a",
			"..one/packages": "/var/vcap/packages", "packages": "..data/packages",
		} {
			if err := os.Symlink(to, filepath.Join(from, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	install := func() string {
		i := &installation{from: from, to: to, own: func(string) error { return nil }}
		if err := i.run(); err != nil {
			t.Fatal(err)
		}
		var all []string
		err := filepath.WalkDir(to, func(at string, e fs.DirEntry, err error) error {
			info, _ := e.Info()
			content, _ := os.ReadFile(at)
			if link, err := os.Readlink(at); err == nil {
				content = []byte(link)
			}
			if e.Name() != marker {
				all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", info.Mode(), strings.TrimPrefix(at, to), content)))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(all, "\n")
	}
	want := `drwxr-x---
drwxr-x--- /bin
-rwxr-x--- /bin/ctl #!/bin/sh
drwxr-x--- /config
drwxr-x--- /config/a
-rw-r----- /config/a/b.conf one
-rw-r----- /monit m
Lrwxrwxrwx /packages /var/vcap/packages`
	tree("one")
	if diff := cmp.Diff(want, install()); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(to, "config/a/b.conf"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree("one") // another container's
	if got := install(); !strings.Contains(got, "b.conf changed") {
		t.Errorf("got %s; want what a script changed", got)
	}
	tree("two")
	if diff := cmp.Diff(strings.ReplaceAll(want, "one", "two"), install()); diff != "" {
		t.Error(diff)
	}
}

// TestScripts runs scripts beside the processes: the output goes to the client's files, the code comes back, and a script ends with its client.
func TestScripts(t *testing.T) {
	w := newWorld(t)
	s := &supervisor{say: t.Logf}
	if err := s.serve(t.Context(), w.dir); err != nil {
		t.Fatal(err)
	}
	script := func(text string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestScripts$")
		cmd.Env = append(os.Environ(), "CUPOLA_MONIT_EXEC="+w.dir+"\n"+text)
		return cmd
	}
	cmd := script("echo out; echo oops >&2; exit 7")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	if stdout.String() != "out\n" || stderr.String() != "oops\n" || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("got %q, %q, code %d", stdout.String(), stderr.String(), cmd.ProcessState.ExitCode())
	}
	cmd = script("cd " + w.dir + "; trap 'echo ended >> log; exit' TERM; echo began >> log; while true; do sleep 0.1; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.log("began\n")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	w.log("began\nended\n")
	if cmd := script("exit 3"); os.Remove(w.path(socketName)) != nil || cmd.Run() == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("got code %d of a script without processes", cmd.ProcessState.ExitCode())
	}
}

// TestConditions restarts a process that does not answer twice in a row, and runs a program for one that uses too much memory.
func TestConditions(t *testing.T) {
	w := newWorld(t)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 2 {
			res.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	db, janitor := w.check("db"), w.check("janitor", "db")
	exec := contract.MonitProgram{Args: []string{"/bin/sh", "-c", "echo big >> " + w.path("programs")}}
	db.Conditions = []contract.MonitCondition{
		{Host: "127.0.0.1", Port: at.Port(), Path: "/health", Wait: 10 * time.Second, Looks: 2},
		{Memory: 1, Looks: 1, Exec: exec},
		{Memory: 1 << 40, Looks: 1},
	}
	end := w.supervise(db, janitor)
	w.log("start db\nstart janitor\nstop janitor\nstop db\nstart db\nstart janitor\n")
	end()
	if text, err := os.ReadFile(w.path("programs")); err != nil || !strings.HasPrefix(string(text), "big\n") {
		t.Errorf("got %q, %v; want that the program ran", text, err)
	}
	text, err := json.Marshal(contract.MonitCondition{Port: 1, Host: "127.0.0.1", Wait: time.Second, Text: "if failed port 1 then restart"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run([]string{contract.MonitTest, string(text)}); err == nil || !strings.Contains(err.Error(), "refused (if failed port 1 then restart)") {
		t.Errorf("got %v; want that nothing listens", err)
	}
}

// TestConditionOfProcessThatStays checks that no second process is started while the first one does not end.
func TestConditionOfProcessThatStays(t *testing.T) {
	w := newWorld(t)
	c := w.check("db")
	c.Stop = contract.MonitProgram{Args: []string{"/bin/sh", "-c", "echo stop db >> " + w.path("log")}, Timeout: time.Millisecond}
	c.Conditions = []contract.MonitCondition{{Memory: 1, Looks: 1}}
	ctx, cancel := context.WithCancel(t.Context())
	s := &supervisor{checks: []contract.MonitCheck{c}, pause: time.Millisecond, say: t.Logf}
	done := make(chan error)
	go func() { done <- s.run(ctx) }()
	w.log("start db\nstop db\nstop db\n")
	n, _ := pid(c)
	cancel()
	_ = syscall.Kill(n, syscall.SIGKILL)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDrainUnmonitors checks that a process which a drain script ends is not started again.
func TestDrainUnmonitors(t *testing.T) {
	w := newWorld(t)
	c := w.check("db")
	s := &supervisor{checks: []contract.MonitCheck{c}, pause: 20 * time.Millisecond, say: t.Logf}
	if err := s.serve(t.Context(), w.dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.run(ctx) }()
	w.log("start db\n")
	drain := request{Args: []string{"/bin/sh", "-c", "kill $(cat " + c.Pidfile + "); sleep 1"}, Unmonitor: true} // many looks
	if code, err := execute(w.dir, drain); code != 0 || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.log("start db\n")
}

// TestMain is the client of a script if it is told so.
func TestMain(m *testing.M) {
	if dir, text, ok := strings.Cut(os.Getenv("CUPOLA_MONIT_EXEC"), "\n"); ok {
		os.Exit(Main([]string{contract.MonitExec, dir, "/bin/sh", "-c", text}))
	}
	os.Exit(m.Run())
}
