package ssh

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"cupola/test/e2e"
)

// TestSSH drives `cf ssh` with a client that speaks as the CLI does: the
// address and the key's fingerprint from the root document, a code from the
// UAA, the process and the index as the user.
func TestSSH(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.PushProbe("probe")
	d.API("POST", "/v3/apps/"+d.App("probe")+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	d.Running("probe", "web", 2)
	for _, test := range []struct {
		name string
		run  func(*e2e.Daemon)
	}{
		{"exec", sshRuns}, {"terminal", sshHasATerminal}, {"forward", sshForwards},
		{"scp", sshCopies}, {"sftp", sshServesFiles}, {"codes", sshCodesAreGoodOnce},
		{"rules", sshIsRefused}, {"console", consoleHasATerminal},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(d.On(t)) })
	}
	sshEnds(d)
	consoleOutlivesTheDaemon(d)
}

// TestSSHIntoABareImage enters a container that has its app and nothing else:
// no shell, no users, no tools.
func TestSSHIntoABareImage(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	r := e2e.StartRegistry(t)
	r.Push(t, "bare", v1.Config{Entrypoint: []string{"/srv/hello"}, WorkingDir: "/srv", Env: []string{"GREETING=from the image"}},
		e2e.LayerOf(t, e2e.TarEntry{Header: tar.Header{Name: "srv/hello", Mode: 0o755}, Content: e2e.HelloProgram(t)}))
	d.Flag("diego_docker", true)
	if fault := d.PushDocker(t, "probe", r.Host+"/stacks/small:bare", e2e.RegistryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.Running("probe", "web", 1)
	c := d.Enter(0)
	for _, command := range []string{
		`test "$GREETING" = "from the image" && cd /srv && test -x hello`,
		"ls -l /srv | grep hello", "echo kept > /kept && cat /kept", "id",
	} {
		if out, err := d.NewSession(c).CombinedOutput(command); err != nil {
			t.Errorf("%s: got %v, %s", command, err, out)
		}
	}
	s := d.NewSession(c)
	s.Stdin = bytes.NewReader([]byte{0, 0, 0})
	if got, err := s.Output("scp -f /kept"); err != nil || string(got) != "C0644 5 kept\nkept\n\x00" {
		t.Errorf("got %q, %v", got, err)
	}
}

func sshRuns(d *e2e.Daemon) {
	c := d.Enter(1)
	s := d.NewSession(c)
	var out, errs bytes.Buffer
	s.Stdout, s.Stderr, s.Stdin = &out, &errs, strings.NewReader("from stdin\n")
	err := s.Run(`echo "$CF_INSTANCE_INDEX $PORT $HOME $(pwd) $(whoami)"; echo oops >&2; cat; exit 42`)
	exit, ok := errors.AsType[*ssh.ExitError](err)
	if !ok || exit.ExitStatus() != 42 || out.String() != "1 8080 /home/vcap /home/vcap vcap\nfrom stdin\n" || errs.String() != "oops\n" {
		d.T.Errorf("got %q, %q, %v", out.String(), errs.String(), err)
	}
	s = d.NewSession(c)
	if err := s.Setenv("FROM_CLIENT", "yes"); err != nil {
		d.T.Error(err)
	}
	if out, err := s.Output("echo $FROM_CLIENT; head -c 8000000 /dev/zero | wc -c"); err != nil || strings.Join(strings.Fields(string(out)), " ") != "yes 8000000" {
		d.T.Errorf("got %q, %v; want the variable and all of the output", out, err)
	}
	err = d.NewSession(c).Run("kill -9 $$")
	if exit, ok := errors.AsType[*ssh.ExitError](err); !ok || exit.Signal() != "KILL" {
		d.T.Errorf("got %v; want an end by KILL", err)
	}
	s = d.NewSession(c)
	if err := s.Start("sleep 60"); err != nil {
		d.T.Fatal(err)
	}
	if err := s.Signal(ssh.SIGTERM); err != nil {
		d.T.Error(err)
	}
	if exit, ok := errors.AsType[*ssh.ExitError](s.Wait()); !ok || exit.Signal() != "TERM" && exit.ExitStatus() != 143 {
		d.T.Errorf("got %v; want an end by TERM", exit)
	}
	sshLogged(d, "Successful remote access by 127.0.0.1:")
	audited(d, "audit.app.ssh-authorized", "admin", "1")
}

// sshLogged waits for a line of source SSH in the app's log.
func sshLogged(d *e2e.Daemon, text string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		var read struct {
			Envelopes struct {
				Batch []struct {
					Tags map[string]string
					Log  struct{ Payload []byte }
				}
			}
		}
		d.API("GET", "/api/v1/read/"+d.App("probe")+"?limit=1000&envelope_types=LOG", nil, &read)
		for _, e := range read.Envelopes.Batch {
			if e.Tags["source_type"] == "SSH" && strings.HasPrefix(string(e.Log.Payload), text) {
				return ""
			}
		}
		return fmt.Sprintf("the log has no %q", text)
	})
}

// audited waits for the newest event of a type.
func audited(d *e2e.Daemon, kind, actor, index string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		var events struct {
			Resources []struct {
				Actor  struct{ Name string }
				Target struct{ GUID, Type string }
				Data   struct{ Index string }
			}
		}
		d.API("GET", "/v3/audit_events?order_by=-created_at&types="+kind+"&target_guids="+d.App("probe"), nil, &events)
		for _, e := range events.Resources {
			if e.Actor.Name == actor && e.Data.Index == index && e.Target.Type == "app" {
				return ""
			}
		}
		return fmt.Sprintf("no %s by %s of instance %s: %+v", kind, actor, index, events.Resources)
	})
}

// screen gathers what a terminal shows.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// shows waits for what matches, after what was waited for before, and gives it
// with its groups.
func (s *screen) shows(t testing.TB, pattern string) (found []string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	e2e.Eventually(t, time.Minute, func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := re.FindIndex(s.text.Bytes())
		if at == nil {
			return fmt.Sprintf("the terminal shows %q, not %s", s.text.String(), pattern)
		}
		found = re.FindStringSubmatch(string(s.text.Next(at[1])))
		return ""
	})
	return found
}

func sshHasATerminal(d *e2e.Daemon) {
	s := d.NewSession(d.Enter(0))
	shown := &screen{}
	s.Stdout, s.Stderr = shown, shown
	keys, err := s.StdinPipe()
	if err != nil {
		d.T.Fatal(err)
	}
	if err := s.RequestPty("xterm-256color", 33, 99, ssh.TerminalModes{ssh.ECHO: 1, ssh.TTY_OP_ISPEED: 115200, ssh.TTY_OP_OSPEED: 115200}); err != nil {
		d.T.Fatal(err)
	}
	if err := s.Shell(); err != nil {
		d.T.Fatal(err)
	}
	write := func(text string) {
		if _, err := io.WriteString(keys, text); err != nil {
			d.T.Error(err)
		}
	}
	shown.shows(d.T, `\$ `)
	write("test -t 0 && echo is-a-tty $((6*7)) $TERM\n")
	shown.shows(d.T, "is-a-tty 42 xterm-256color\r\n")
	size := newSizeProbe(d)
	write(size + "\n")
	shown.shows(d.T, "size 33 99\r\n")
	if err := s.WindowChange(50, 120); err != nil {
		d.T.Error(err)
	}
	for got := ""; got != "50 120"; { // what is typed may overtake the window
		write(size + "\n")
		got = shown.shows(d.T, "size (33 99|50 120)\r\n")[1]
	}
	write("sleep 60\n")
	shown.shows(d.T, "sleep 60\r\n")
	write("\x03")
	shown.shows(d.T, `\^C(.|\n)*\$ `)
	write("exit 7\n")
	exit, ok := errors.AsType[*ssh.ExitError](s.Wait())
	if !ok || exit.ExitStatus() != 7 {
		d.T.Errorf("got %v; want exit 7", exit)
	}
}

// newSizeProbe puts a program that says the terminal's size into instance 0,
// since the smallest stack has none.
func newSizeProbe(d *e2e.Daemon) (command string) {
	d.T.Helper()
	dir := d.T.TempDir()
	source := `package main

import (
	"fmt"
	"syscall"
	"unsafe"
)

func main() {
	var size struct{ rows, columns, x, y uint16 }
	syscall.Syscall(syscall.SYS_IOCTL, 0, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	fmt.Println("size", size.rows, size.columns)
}
`
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		d.T.Fatal(err)
	}
	program, err := os.ReadFile(e2e.Program(d.T, dir, "main.go"))
	if err != nil {
		d.T.Fatal(err)
	}
	s := d.NewSession(d.Enter(0))
	s.Stdin = bytes.NewReader(program)
	if out, err := s.CombinedOutput("cat > /home/vcap/size && chmod +x /home/vcap/size"); err != nil {
		d.T.Fatalf("%v: %s", err, out)
	}
	return "/home/vcap/size"
}

// sshForwards is `cf ssh -L`: the container itself makes the connection.
func sshForwards(d *e2e.Daemon) {
	c := d.Enter(0)
	web := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: c.DialContext, DisableKeepAlives: true}}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			res, err := web.Get("http://localhost:8080/")
			if err != nil {
				d.T.Error(err)
				return
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); string(body) != "ready\n" {
				d.T.Errorf("got %q, %v; want the app's answer", body, err)
			}
		})
	}
	all.Wait()
	if conn, err := c.Dial("tcp", "localhost:1"); err == nil {
		conn.Close()
		d.T.Error("a port without a listener was reached")
	}
	if conn, err := c.Dial("tcp", d.Addr); err == nil {
		conn.Close()
		d.T.Error("the host's loopback was reached from the container")
	}
	if _, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		d.T.Error("a listener was opened in the container")
	}
}

// sshServesFiles is the sftp subsystem.
func sshServesFiles(d *e2e.Daemon) {
	files, err := sftp.NewClient(d.Enter(0))
	if err != nil {
		d.T.Fatal(err)
	}
	defer files.Close()
	want := bytes.Repeat([]byte("some bytes\n"), 300_000)
	f, err := files.Create("sftp-file")
	if err != nil {
		d.T.Fatal(err)
	}
	_, err = f.ReadFrom(bytes.NewReader(want))
	if err := errors.Join(err, f.Close()); err != nil {
		d.T.Fatal(err)
	}
	if f, err = files.Open("/home/vcap/sftp-file"); err != nil {
		d.T.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
		d.T.Errorf("got %d bytes, %v; want the %d that were written", len(got), err, len(want))
	}
	if _, err := files.Create("/etc/nope"); !errors.Is(err, os.ErrPermission) {
		d.T.Errorf("got %v; want no permission beyond the app's", err)
	}
}

func sshCodesAreGoodOnce(d *e2e.Daemon) {
	code := d.SSHCode()
	if _, _, err := d.DialSSH(0, code); err != nil {
		d.T.Fatal(err)
	}
	for name, code := range map[string]string{"used": code, "wrong": "WRONG", "empty": ""} {
		_, banner, err := d.DialSSH(1, code)
		if err == nil || !strings.Contains(banner, "the one-time code is wrong, was used or has expired") {
			d.T.Errorf("a %s code: got %v and %q", name, err, banner)
		}
	}
	audited(d, "audit.app.ssh-unauthorized", "unknown-user-email", "1")
}

// sshIsRefused turns ssh off in each place where it can be.
func sshIsRefused(d *e2e.Daemon) {
	var app struct {
		Relationships struct {
			Space struct{ Data struct{ GUID string } }
		}
	}
	guid := d.App("probe")
	d.API("GET", "/v3/apps/"+guid, nil, &app)
	for path, reason := range map[string]string{
		"/v3/apps/" + guid + "/features/ssh":                                "ssh is disabled for app",
		"/v3/spaces/" + app.Relationships.Space.Data.GUID + "/features/ssh": "ssh is disabled for space 'dev'",
	} {
		d.API("PATCH", path, e2e.Doc{"enabled": false}, nil)
		var state struct {
			Enabled bool
			Reason  string
		}
		d.API("GET", "/v3/apps/"+guid+"/ssh_enabled", nil, &state)
		_, banner, err := d.DialSSH(0, d.SSHCode())
		if state.Enabled || state.Reason != reason || err == nil || strings.TrimSpace(banner) != reason {
			d.T.Errorf("got %+v, %v, %q; want %q", state, err, banner, reason)
		}
		d.API("PATCH", path, e2e.Doc{"enabled": true}, nil)
	}
	audited(d, "audit.app.ssh-unauthorized", "admin", "0")
	if _, banner, err := d.DialSSH(9, d.SSHCode()); err == nil || !strings.Contains(banner, "not running") {
		d.T.Errorf("an instance that is not there: got %v, %q", err, banner)
	}
	d.Enter(0)
}

// sshEnds ends sessions in each way there is, and wants nothing of them left.
func sshEnds(d *e2e.Daemon) {
	const left = "(sleep 987654 &); sleep 987654 & sleep 987654"
	start := func(index int) (*ssh.Client, *ssh.Session) {
		c := d.Enter(index)
		s := d.NewSession(c)
		if err := s.Start(left); err != nil {
			d.T.Fatal(err)
		}
		e2e.Eventually(d.T, time.Minute, func() string {
			if n := sleepers(d.T); n < 2 {
				return fmt.Sprintf("%d processes of the session run", n)
			}
			return ""
		})
		return c, s
	}
	nothingIsLeft := func(why string) {
		e2e.Eventually(d.T, time.Minute, func() string {
			if n := sleepers(d.T); n > 0 {
				return fmt.Sprintf("%s: %d processes of the session run on", why, n)
			}
			return ""
		})
	}
	c, _ := start(0)
	c.Close()
	nothingIsLeft("the user has left")

	_, s := start(0)
	d.Kill()
	if err := s.Wait(); err == nil {
		d.T.Error("the session ended well; want it to end with the daemon")
	}
	nothingIsLeft("the daemon was killed")

	d.Start()
	d.Running("probe", "web", 2)
	if out, err := d.NewSession(d.Enter(1)).Output("echo $CF_INSTANCE_INDEX $HOME $(whoami)"); err != nil || string(out) != "1 /home/vcap vcap\n" {
		d.T.Errorf("an adopted instance: got %q, %v", out, err)
	}

	_, s = start(0)
	d.API("DELETE", "/v3/apps/"+d.App("probe")+"/processes/web/instances/0", nil, nil)
	if err := s.Wait(); err == nil {
		d.T.Error("the session ended well; want it to end with the instance")
	}
	nothingIsLeft("the instance has ended")
}

// sleepers counts the processes that sshEnds leaves.
func sleepers(t testing.TB) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), "sleep\x00987654\x00") {
			n++
		}
	}
	return n
}

// sshCopies speaks scp's old protocol, which starts a program at the far end.
func sshCopies(d *e2e.Daemon) {
	c := d.Enter(0)
	want := bytes.Repeat([]byte{0, 1, 2, 255}, 500_000)
	to := d.NewSession(c)
	in, _ := to.StdinPipe()
	var answers bytes.Buffer
	to.Stdout = &answers
	if err := to.Start("scp -t '/home/vcap/a copy'"); err != nil {
		d.T.Fatal(err)
	}
	fmt.Fprintf(in, "C0640 %d whatever\n", len(want))
	in.Write(append(want[:len(want):len(want)], 0))
	in.Close()
	if err := to.Wait(); err != nil || !bytes.Equal(answers.Bytes(), []byte{0, 0, 0}) {
		d.T.Fatalf("got %q, %v; want three times yes", answers.String(), err)
	}
	from := d.NewSession(c)
	from.Stdin = bytes.NewReader([]byte{0, 0, 0, 0})
	got, err := from.Output("scp -f '/home/vcap/a copy'")
	if header := fmt.Sprintf("C0640 %d a copy\n", len(want)); err != nil || string(got) != header+string(want)+"\x00" {
		d.T.Errorf("got %d bytes that begin with %.30q, %v; want %q and the file", len(got), got, err, header)
	}
	copiesByOpenSSH(d)
}

// copiesByOpenSSH copies there and back by the programs that users have.
func copiesByOpenSSH(d *e2e.Daemon) {
	if _, err := exec.LookPath("scp"); err != nil {
		return
	}
	dir := d.T.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "tree", "sub"), 0o750), os.WriteFile(filepath.Join(dir, "tree", "sub", "file"), []byte("x"), 0o600)); err != nil {
		d.T.Fatal(err)
	}
	for _, protocol := range []string{"-O", "-s"} {
		back := filepath.Join(dir, "back"+protocol)
		scp(d, dir, protocol, filepath.Join(dir, "tree"), "localhost:tree"+protocol)
		scp(d, dir, protocol, "localhost:tree"+protocol, back)
		if got, err := os.ReadFile(filepath.Join(back, "sub", "file")); err != nil || string(got) != "x" {
			d.T.Errorf("scp %s: got %q, %v", protocol, got, err)
		}
	}
}

func scp(d *e2e.Daemon, dir, protocol, from, to string) {
	d.T.Helper()
	ask := filepath.Join(dir, "ask")
	if err := os.WriteFile(ask, []byte("#!/bin/sh\necho "+d.SSHCode()+"\n"), 0o700); err != nil {
		d.T.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(d.SSHAddress())
	cmd := exec.Command("scp", protocol, "-rp", "-P", port, "-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "PubkeyAuthentication=no", "-o", "User=cf:"+d.App("probe")+"/0", from, to)
	cmd.Env = append(os.Environ(), "SSH_ASKPASS="+ask, "SSH_ASKPASS_REQUIRE=force", "DISPLAY=:0")
	if out, err := cmd.CombinedOutput(); err != nil {
		d.T.Errorf("scp %s %s %s: %v\n%s", protocol, from, to, err, out)
	}
}
