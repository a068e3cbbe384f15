package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
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

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// TestSSH drives `cf ssh` with a client that speaks as the CLI does: the
// address and the key's fingerprint from the root document, a code from the
// UAA, the process and the index as the user.
func TestSSH(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	d.pushProbe("probe")
	d.api("POST", "/v3/apps/"+d.app("probe")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	d.running("probe", "web", 2)
	for _, test := range []struct {
		name string
		run  func(*daemon)
	}{
		{"exec", (*daemon).sshRuns}, {"terminal", (*daemon).sshHasATerminal}, {"forward", (*daemon).sshForwards},
		{"scp", (*daemon).sshCopies}, {"sftp", (*daemon).sshServesFiles}, {"codes", (*daemon).sshCodesAreGoodOnce},
		{"rules", (*daemon).sshIsRefused},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(d.on(t)) })
	}
	d.sshEnds()
}

// TestSSHIntoABareImage enters a container that has its app and nothing else:
// no shell, no users, no tools.
func TestSSHIntoABareImage(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	r := startRegistry(t)
	r.push(t, "bare", v1.Config{Entrypoint: []string{"/srv/hello"}, WorkingDir: "/srv", Env: []string{"GREETING=from the image"}},
		layerOf(t, tarEntry{tar.Header{Name: "srv/hello", Mode: 0o755}, helloProgram(t)}))
	d.flag("diego_docker", true)
	if fault := d.pushDocker(t, "probe", r.host+"/stacks/small:bare", registryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.running("probe", "web", 1)
	c := d.enter(0)
	for _, command := range []string{
		`test "$GREETING" = "from the image" && cd /srv && test -x hello`,
		"ls -l /srv | grep hello", "echo kept > /kept && cat /kept", "id",
	} {
		if out, err := d.newSession(c).CombinedOutput(command); err != nil {
			t.Errorf("%s: got %v, %s", command, err, out)
		}
	}
	s := d.newSession(c)
	s.Stdin = bytes.NewReader([]byte{0, 0, 0})
	if got, err := s.Output("scp -f /kept"); err != nil || string(got) != "C0644 5 kept\nkept\n\x00" {
		t.Errorf("got %q, %v", got, err)
	}
}

// sshCode is what `cf ssh-code` prints.
func (d *daemon) sshCode() string {
	d.t.Helper()
	c := d.client()
	c.http = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequest("GET", c.api+"/oauth/authorize?response_type=code&client_id=ssh-proxy", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	res, err := c.send(req)
	if err != nil {
		d.t.Fatal(err)
	}
	res.Body.Close()
	to, err := url.Parse(res.Header.Get("Location"))
	if err != nil || res.StatusCode != 302 || to.Query().Get("code") == "" {
		d.t.Fatalf("got status %d, location %q", res.StatusCode, res.Header.Get("Location"))
	}
	return to.Query().Get("code")
}

// dialSSH connects to an instance of the app probe.
func (d *daemon) dialSSH(index int, code string) (c *ssh.Client, banner string, err error) {
	d.t.Helper()
	var root struct {
		Links struct {
			SSH struct {
				Href string
				Meta struct {
					Fingerprint string `json:"host_key_fingerprint"`
					Client      string `json:"oauth_client"`
				}
			} `json:"app_ssh"`
		}
	}
	d.api("GET", "/", nil, &root)
	link := root.Links.SSH
	if link.Meta.Client != "ssh-proxy" || len(link.Meta.Fingerprint) != 43 {
		d.t.Fatalf("got app_ssh %+v", link)
	}
	c, err = ssh.Dial("tcp", link.Href, &ssh.ClientConfig{
		User: fmt.Sprintf("cf:%s/%d", d.app("probe"), index), Auth: []ssh.AuthMethod{ssh.Password(code)}, Timeout: 10 * time.Second,
		BannerCallback: func(text string) error { banner += text; return nil },
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			sum := sha256.Sum256(key.Marshal())
			if base64.RawStdEncoding.EncodeToString(sum[:]) != link.Meta.Fingerprint {
				return errors.New("the key is not the announced one")
			}
			return nil
		},
	})
	if err == nil {
		d.t.Cleanup(func() { c.Close() })
	}
	return c, banner, err
}

// enter is dialSSH with a fresh code.
func (d *daemon) enter(index int) *ssh.Client {
	d.t.Helper()
	c, _, err := d.dialSSH(index, d.sshCode())
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

func (d *daemon) newSession(c *ssh.Client) *ssh.Session {
	d.t.Helper()
	s, err := c.NewSession()
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *daemon) sshRuns() {
	c := d.enter(1)
	s := d.newSession(c)
	var out, errs bytes.Buffer
	s.Stdout, s.Stderr, s.Stdin = &out, &errs, strings.NewReader("from stdin\n")
	err := s.Run(`echo "$CF_INSTANCE_INDEX $PORT $HOME $(pwd) $(whoami)"; echo oops >&2; cat; exit 42`)
	exit, ok := errors.AsType[*ssh.ExitError](err)
	if !ok || exit.ExitStatus() != 42 || out.String() != "1 8080 /home/vcap /home/vcap vcap\nfrom stdin\n" || errs.String() != "oops\n" {
		d.t.Errorf("got %q, %q, %v", out.String(), errs.String(), err)
	}
	s = d.newSession(c)
	if err := s.Setenv("FROM_CLIENT", "yes"); err != nil {
		d.t.Error(err)
	}
	if out, err := s.Output("echo $FROM_CLIENT; head -c 8000000 /dev/zero | wc -c"); err != nil || strings.Join(strings.Fields(string(out)), " ") != "yes 8000000" {
		d.t.Errorf("got %q, %v; want the variable and all of the output", out, err)
	}
	err = d.newSession(c).Run("kill -9 $$")
	if exit, ok := errors.AsType[*ssh.ExitError](err); !ok || exit.Signal() != "KILL" {
		d.t.Errorf("got %v; want an end by KILL", err)
	}
	s = d.newSession(c)
	if err := s.Start("sleep 60"); err != nil {
		d.t.Fatal(err)
	}
	if err := s.Signal(ssh.SIGTERM); err != nil {
		d.t.Error(err)
	}
	if exit, ok := errors.AsType[*ssh.ExitError](s.Wait()); !ok || exit.Signal() != "TERM" && exit.ExitStatus() != 143 {
		d.t.Errorf("got %v; want an end by TERM", exit)
	}
	d.sshLogged("Successful remote access by 127.0.0.1:")
	d.audited("audit.app.ssh-authorized", "admin", "1")
}

// sshLogged waits for a line of source SSH in the app's log.
func (d *daemon) sshLogged(text string) {
	d.t.Helper()
	eventually(d.t, 10*time.Second, func() string {
		var read struct {
			Envelopes struct {
				Batch []struct {
					Tags map[string]string
					Log  struct{ Payload []byte }
				}
			}
		}
		d.api("GET", "/api/v1/read/"+d.app("probe")+"?limit=1000&envelope_types=LOG", nil, &read)
		for _, e := range read.Envelopes.Batch {
			if e.Tags["source_type"] == "SSH" && strings.HasPrefix(string(e.Log.Payload), text) {
				return ""
			}
		}
		return fmt.Sprintf("the log has no %q", text)
	})
}

// audited waits for the newest event of a type.
func (d *daemon) audited(kind, actor, index string) {
	d.t.Helper()
	eventually(d.t, 10*time.Second, func() string {
		var events struct {
			Resources []struct {
				Actor  struct{ Name string }
				Target struct{ GUID, Type string }
				Data   struct{ Index string }
			}
		}
		d.api("GET", "/v3/audit_events?order_by=-created_at&types="+kind+"&target_guids="+d.app("probe"), nil, &events)
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
	eventually(t, 15*time.Second, func() string {
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

func (d *daemon) sshHasATerminal() {
	s := d.newSession(d.enter(0))
	shown := &screen{}
	s.Stdout, s.Stderr = shown, shown
	keys, err := s.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := s.RequestPty("xterm-256color", 33, 99, ssh.TerminalModes{ssh.ECHO: 1, ssh.TTY_OP_ISPEED: 115200, ssh.TTY_OP_OSPEED: 115200}); err != nil {
		d.t.Fatal(err)
	}
	if err := s.Shell(); err != nil {
		d.t.Fatal(err)
	}
	write := func(text string) {
		if _, err := io.WriteString(keys, text); err != nil {
			d.t.Error(err)
		}
	}
	shown.shows(d.t, `\$ `)
	write("test -t 0 && echo is-a-tty $((6*7)) $TERM\n")
	shown.shows(d.t, "is-a-tty 42 xterm-256color\r\n")
	size := d.newSizeProbe()
	write(size + "\n")
	shown.shows(d.t, "size 33 99\r\n")
	if err := s.WindowChange(50, 120); err != nil {
		d.t.Error(err)
	}
	for got := ""; got != "50 120"; { // what is typed may overtake the window
		write(size + "\n")
		got = shown.shows(d.t, "size (33 99|50 120)\r\n")[1]
	}
	write("sleep 60\n")
	shown.shows(d.t, "sleep 60\r\n")
	write("\x03")
	shown.shows(d.t, `\^C(.|\n)*\$ `)
	write("exit 7\n")
	exit, ok := errors.AsType[*ssh.ExitError](s.Wait())
	if !ok || exit.ExitStatus() != 7 {
		d.t.Errorf("got %v; want exit 7", exit)
	}
}

// newSizeProbe puts a program that says the terminal's size into instance 0,
// since the smallest stack has none.
func (d *daemon) newSizeProbe() (command string) {
	d.t.Helper()
	dir := d.t.TempDir()
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
		d.t.Fatal(err)
	}
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "size"), filepath.Join(dir, "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "size"))
	if err != nil {
		d.t.Fatal(err)
	}
	s := d.newSession(d.enter(0))
	s.Stdin = bytes.NewReader(program)
	if out, err := s.CombinedOutput("cat > /home/vcap/size && chmod +x /home/vcap/size"); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	return "/home/vcap/size"
}

// sshForwards is `cf ssh -L`: the container itself makes the connection.
func (d *daemon) sshForwards() {
	c := d.enter(0)
	web := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: c.DialContext, DisableKeepAlives: true}}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			res, err := web.Get("http://localhost:8080/")
			if err != nil {
				d.t.Error(err)
				return
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); string(body) != "ready\n" {
				d.t.Errorf("got %q, %v; want the app's answer", body, err)
			}
		})
	}
	all.Wait()
	if conn, err := c.Dial("tcp", "localhost:1"); err == nil {
		conn.Close()
		d.t.Error("a port that nobody listens on was reached")
	}
	if conn, err := c.Dial("tcp", d.addr); err == nil {
		conn.Close()
		d.t.Error("the host's loopback was reached from the container")
	}
	if _, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		d.t.Error("a listener was opened in the container")
	}
}

// sshServesFiles is the sftp subsystem.
func (d *daemon) sshServesFiles() {
	files, err := sftp.NewClient(d.enter(0))
	if err != nil {
		d.t.Fatal(err)
	}
	defer files.Close()
	want := bytes.Repeat([]byte("some bytes\n"), 300_000)
	f, err := files.Create("sftp-file")
	if err != nil {
		d.t.Fatal(err)
	}
	_, err = f.ReadFrom(bytes.NewReader(want))
	if err := errors.Join(err, f.Close()); err != nil {
		d.t.Fatal(err)
	}
	if f, err = files.Open("/home/vcap/sftp-file"); err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
		d.t.Errorf("got %d bytes, %v; want the %d that were written", len(got), err, len(want))
	}
	if _, err := files.Create("/etc/nope"); !errors.Is(err, os.ErrPermission) {
		d.t.Errorf("got %v; want no permission beyond the app's", err)
	}
}

func (d *daemon) sshCodesAreGoodOnce() {
	code := d.sshCode()
	if _, _, err := d.dialSSH(0, code); err != nil {
		d.t.Fatal(err)
	}
	for name, code := range map[string]string{"used": code, "wrong": "WRONG", "empty": ""} {
		_, banner, err := d.dialSSH(1, code)
		if err == nil || !strings.Contains(banner, "the one-time code is wrong, was used or has expired") {
			d.t.Errorf("a %s code: got %v and %q", name, err, banner)
		}
	}
	d.audited("audit.app.ssh-unauthorized", "unknown-user-email", "1")
}

// sshIsRefused turns ssh off in each place where it can be.
func (d *daemon) sshIsRefused() {
	var app struct {
		Relationships struct {
			Space struct{ Data struct{ GUID string } }
		}
	}
	guid := d.app("probe")
	d.api("GET", "/v3/apps/"+guid, nil, &app)
	for path, reason := range map[string]string{
		"/v3/apps/" + guid + "/features/ssh":                                "ssh is disabled for app",
		"/v3/spaces/" + app.Relationships.Space.Data.GUID + "/features/ssh": "ssh is disabled for space 'dev'",
	} {
		d.api("PATCH", path, doc{"enabled": false}, nil)
		var state struct {
			Enabled bool
			Reason  string
		}
		d.api("GET", "/v3/apps/"+guid+"/ssh_enabled", nil, &state)
		_, banner, err := d.dialSSH(0, d.sshCode())
		if state.Enabled || state.Reason != reason || err == nil || strings.TrimSpace(banner) != reason {
			d.t.Errorf("got %+v, %v, %q; want %q", state, err, banner, reason)
		}
		d.api("PATCH", path, doc{"enabled": true}, nil)
	}
	d.audited("audit.app.ssh-unauthorized", "admin", "0")
	if _, banner, err := d.dialSSH(9, d.sshCode()); err == nil || !strings.Contains(banner, "not running") {
		d.t.Errorf("an instance that is not there: got %v, %q", err, banner)
	}
	d.enter(0)
}

// sshEnds ends sessions in each way there is, and wants nothing of them left.
func (d *daemon) sshEnds() {
	const left = "(sleep 987654 &); sleep 987654 & sleep 987654"
	start := func(index int) (*ssh.Client, *ssh.Session) {
		c := d.enter(index)
		s := d.newSession(c)
		if err := s.Start(left); err != nil {
			d.t.Fatal(err)
		}
		eventually(d.t, 10*time.Second, func() string {
			if n := sleepers(d.t); n < 2 {
				return fmt.Sprintf("%d processes of the session run", n)
			}
			return ""
		})
		return c, s
	}
	nothingIsLeft := func(why string) {
		eventually(d.t, 15*time.Second, func() string {
			if n := sleepers(d.t); n > 0 {
				return fmt.Sprintf("%s: %d processes of the session run on", why, n)
			}
			return ""
		})
	}
	c, _ := start(0)
	c.Close()
	nothingIsLeft("the user has left")

	_, s := start(0)
	d.kill()
	if err := s.Wait(); err == nil {
		d.t.Error("the session ended well; want it to end with the daemon")
	}
	nothingIsLeft("the daemon was killed")

	d.start()
	d.running("probe", "web", 2)
	if out, err := d.newSession(d.enter(1)).Output("echo $CF_INSTANCE_INDEX $HOME $(whoami)"); err != nil || string(out) != "1 /home/vcap vcap\n" {
		d.t.Errorf("an adopted instance: got %q, %v", out, err)
	}

	_, s = start(0)
	d.api("DELETE", "/v3/apps/"+d.app("probe")+"/processes/web/instances/0", nil, nil)
	if err := s.Wait(); err == nil {
		d.t.Error("the session ended well; want it to end with the instance")
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
func (d *daemon) sshCopies() {
	c := d.enter(0)
	want := bytes.Repeat([]byte{0, 1, 2, 255}, 500_000)
	to := d.newSession(c)
	in, _ := to.StdinPipe()
	var answers bytes.Buffer
	to.Stdout = &answers
	if err := to.Start("scp -t '/home/vcap/a copy'"); err != nil {
		d.t.Fatal(err)
	}
	fmt.Fprintf(in, "C0640 %d whatever\n", len(want))
	in.Write(append(want[:len(want):len(want)], 0))
	in.Close()
	if err := to.Wait(); err != nil || !bytes.Equal(answers.Bytes(), []byte{0, 0, 0}) {
		d.t.Fatalf("got %q, %v; want three times yes", answers.String(), err)
	}
	from := d.newSession(c)
	from.Stdin = bytes.NewReader([]byte{0, 0, 0, 0})
	got, err := from.Output("scp -f '/home/vcap/a copy'")
	if header := fmt.Sprintf("C0640 %d a copy\n", len(want)); err != nil || string(got) != header+string(want)+"\x00" {
		d.t.Errorf("got %d bytes that begin with %.30q, %v; want %q and the file", len(got), got, err, header)
	}
	d.copiesByOpenSSH()
}

// copiesByOpenSSH copies there and back by the programs that users have.
func (d *daemon) copiesByOpenSSH() {
	if _, err := exec.LookPath("scp"); err != nil {
		return
	}
	dir := d.t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "tree", "sub"), 0o750), os.WriteFile(filepath.Join(dir, "tree", "sub", "file"), []byte("x"), 0o600)); err != nil {
		d.t.Fatal(err)
	}
	for _, protocol := range []string{"-O", "-s"} {
		back := filepath.Join(dir, "back"+protocol)
		d.scp(dir, protocol, filepath.Join(dir, "tree"), "localhost:tree"+protocol)
		d.scp(dir, protocol, "localhost:tree"+protocol, back)
		if got, err := os.ReadFile(filepath.Join(back, "sub", "file")); err != nil || string(got) != "x" {
			d.t.Errorf("scp %s: got %q, %v", protocol, got, err)
		}
	}
}

func (d *daemon) scp(dir, protocol, from, to string) {
	d.t.Helper()
	ask := filepath.Join(dir, "ask")
	if err := os.WriteFile(ask, []byte("#!/bin/sh\necho "+d.sshCode()+"\n"), 0o700); err != nil {
		d.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(d.sshAddress())
	cmd := exec.Command("scp", protocol, "-rp", "-P", port, "-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "PubkeyAuthentication=no", "-o", "User=cf:"+d.app("probe")+"/0", from, to)
	cmd.Env = append(os.Environ(), "SSH_ASKPASS="+ask, "SSH_ASKPASS_REQUIRE=force", "DISPLAY=:0")
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Errorf("scp %s %s %s: %v\n%s", protocol, from, to, err, out)
	}
}

func (d *daemon) sshAddress() string {
	d.t.Helper()
	var root struct {
		Links map[string]*struct{ Href string }
	}
	d.api("GET", "/", nil, &root)
	return root.Links["app_ssh"].Href
}
