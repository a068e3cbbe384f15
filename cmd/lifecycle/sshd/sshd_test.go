package sshd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// helperEnv makes the test binary the program that it tests.
const helperEnv = "CUPOLA_TEST_SSHD"

func TestMain(m *testing.M) {
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP) // what ignores it, like nohup, would have programs ignore it
	if os.Getenv(helperEnv) == "1" {
		os.Exit(Main(nil))
	}
	os.Exit(m.Run())
}

// helper is a running sshd.
type helper struct {
	*ssh.Client
	cmd *exec.Cmd
	in  io.Closer
	out io.Closer
}

type halves struct {
	stdio // for what net.Conn has besides
	in    io.WriteCloser
	out   io.Reader
}

func (h halves) Read(p []byte) (int, error)  { return h.out.Read(p) }
func (h halves) Write(p []byte) (int, error) { return h.in.Write(p) }
func (h halves) Close() error                { return nil } // the test closes each when it wants

func start(t *testing.T) *helper {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{helperEnv + "=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "OF_THE_APP=yes"}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, channels, requests, err := ssh.NewClientConn(halves{in: in, out: out}, "", &ssh.ClientConfig{HostKeyCallback: func(string, net.Addr, ssh.PublicKey) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	h := &helper{Client: ssh.NewClient(conn, channels, requests), cmd: cmd, in: in, out: out}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return h
}

func (h *helper) session(t *testing.T) *ssh.Session {
	t.Helper()
	s, err := h.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPrograms(t *testing.T) {
	h := start(t)
	tests := []struct {
		command, stdin, stdout, stderr string
		status                         int
		signal                         string
	}{
		{command: "echo $OF_THE_APP $LANG; exit 3", stdout: "yes C.UTF-8\n", status: 3},
		{command: `test "$(pwd)" = "$HOME" && echo home`, stdout: "home\n"},
		{command: "echo oops >&2; cat", stdin: "typed", stdout: "typed", stderr: "oops\n"},
		{command: "kill -KILL $$", signal: "KILL"},
		{command: "/no/such/program 2>/dev/null", status: 127},
	}
	for _, test := range tests {
		s := h.session(t)
		var out, errs bytes.Buffer
		s.Stdin, s.Stdout, s.Stderr = strings.NewReader(test.stdin), &out, &errs
		err := s.Run(test.command)
		exit, _ := errors.AsType[*ssh.ExitError](err)
		if exit == nil {
			exit = &ssh.ExitError{}
		}
		got := fmt.Sprint(out.String(), errs.String(), exit.Signal())
		if got != test.stdout+test.stderr+test.signal || test.signal == "" && exit.ExitStatus() != test.status {
			t.Errorf("%s: got %q, status %d, %v", test.command, got, exit.ExitStatus(), err)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	h := start(t)
	s := h.session(t)
	for _, request := range []string{"auth-agent-req@openssh.com", "x11-req", "window-change", "signal", "pty-req", "unheard-of"} {
		if ok, err := s.SendRequest(request, true, []byte{1}); ok || err != nil {
			t.Errorf("%s: got %v, %v; want no", request, ok, err)
		}
	}
	for _, name := range []string{"", "A=B", "A\x00"} {
		if err := s.Setenv(name, "x"); err == nil {
			t.Errorf("the variable %q was set", name)
		}
	}
	if err := s.RequestSubsystem("netconf"); err == nil {
		t.Error("an unknown subsystem was begun")
	}
	if err := s.Start("cat"); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.SendRequest("exec", true, ssh.Marshal(struct{ Text string }{"cat"})); ok || err != nil {
		t.Errorf("a second program: got %v, %v; want no", ok, err)
	}
	if _, _, err := h.OpenChannel("x11", nil); err == nil {
		t.Error("a channel of an unknown type was opened")
	}
	if _, _, err := h.OpenChannel("direct-tcpip", []byte{1}); err == nil {
		t.Error("a connection to nowhere was made")
	}
}

func TestTerminal(t *testing.T) {
	h := start(t)
	s := h.session(t)
	var out bytes.Buffer
	s.Stdout = &out
	if err := s.RequestPty("vt100", 11, 22, ssh.TerminalModes{ssh.ECHO: 0, ssh.OPOST: 0}); err != nil {
		t.Fatal(err)
	}
	if err := s.WindowChange(33, 44); err != nil {
		t.Fatal(err)
	}
	s.Stdin = strings.NewReader("typed\n")
	if err := s.Run("tty >/dev/null && stty size && echo $TERM && cat && exit 0"); err != nil {
		t.Fatalf("got %v, %q", err, out.String())
	}
	if want := "33 44\nvt100\ntyped\n"; out.String() != want {
		t.Errorf("got %q; want %q: the size, no echo, no carriage returns, and an end of input", out.String(), want)
	}
}

func TestHangUpReachesThePrograms(t *testing.T) {
	h := start(t)
	file := filepath.Join(t.TempDir(), "told")
	s := h.session(t)
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("trap 'echo told > " + file + "; exit' HUP; echo ready; while :; do sleep 0.05; done"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	s.Close()
	eventually(t, func() bool {
		text, err := os.ReadFile(file)
		return err == nil && string(text) == "told\n"
	})
}

// TestNothingIsLeft ends the connection, as a killed daemon does, and wants
// what escaped from its session ended too.
func TestNothingIsLeft(t *testing.T) {
	for name, end := range map[string]func(*helper){
		"nothing to read": func(*helper) {},
		"nobody to write to": func(h *helper) {
			s, _ := h.NewSession()
			s.Start("while sleep 0.01; do echo unread; done")
			h.out.Close()
			time.Sleep(100 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			pids := h.escape(t)
			end(h)
			h.in.Close()
			h.cmd.Wait()
			for _, pid := range pids {
				if runs(pid) {
					t.Errorf("process %d runs on", pid)
					unix.Kill(pid, unix.SIGKILL)
				}
			}
		})
	}
}

// escape starts programs that leave their session behind.
func (h *helper) escape(t *testing.T) (pids []int) {
	t.Helper()
	out, err := h.session(t).Output("(setsid sleep 300 >/dev/null 2>&1 & echo $!); trap '' HUP; nohup sleep 300 >/dev/null 2>&1 & echo $!")
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.FieldsSeq(string(out)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("got %q", out)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 || !runs(pids[0]) || !runs(pids[1]) {
		t.Fatalf("got %v; want two that run on", pids)
	}
	return pids
}

func runs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	p, ok := parseStat(string(text))
	return ok && !p.ended
}

func TestForward(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			text, _ := io.ReadAll(c) // up to the half close
			c.Write(bytes.ToUpper(text))
			c.Close()
		}
	}()
	h := start(t)
	c, err := h.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "hello")
	c.(interface{ CloseWrite() error }).CloseWrite()
	if got, err := io.ReadAll(c); string(got) != "HELLO" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	l.Close()
	if _, err := h.Dial("tcp", l.Addr().String()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v; want the reason", err)
	}
}

func TestFiles(t *testing.T) {
	c, err := sftp.NewClient(start(t).Client)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := c.Create("made")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "content")
	f.Close()
	entries, err := c.ReadDir(".")
	if err != nil || len(entries) != 1 || entries[0].Name() != "made" || entries[0].Size() != 7 {
		t.Errorf("got %v, %v; want the file in the home", entries, err)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	k := adopt()
	defer k.end()
	cmd := exec.Command("/bin/sh", "-c", "(sleep 0.01 & echo $!)")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := k.start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := k.wait(cmd); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		k.reap()
		return unix.Kill(pid, 0) == unix.ESRCH
	})
}

func TestModes(t *testing.T) {
	settings := &unix.Termios{Lflag: unix.ECHO | unix.ICANON, Iflag: unix.ICRNL}
	applyModes(settings, []byte{
		53, 0, 0, 0, 0, // no ECHO
		42, 0, 0, 0, 1, // IUTF8
		1, 0, 0, 0, 7, // VINTR
		2, 0, 0, 0, 255, // VQUIT: none
		128, 0, 1, 0, 0, // a speed
		0, 51, 0, 0, 0, 0, // the end: no more is read
	})
	want := &unix.Termios{Lflag: unix.ICANON, Iflag: unix.ICRNL | unix.IUTF8}
	want.Cc[unix.VINTR] = 7
	if diff := cmp.Diff(want, settings); diff != "" {
		t.Error(diff)
	}
}

func FuzzModes(f *testing.F) {
	f.Add([]byte{53, 0, 0, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, encoded []byte) { applyModes(&unix.Termios{}, encoded) })
}

func FuzzParseStat(f *testing.F) {
	f.Add("12 (a) b) S 7 1")
	f.Fuzz(func(_ *testing.T, text string) { parseStat(text) })
}

func TestParseStat(t *testing.T) {
	tests := []struct {
		text   string
		parent int
		ended  bool
		ok     bool
	}{
		{"12 (sh) S 7 12 12 0", 7, false, true},
		{"12 (a) Z 9 (b) Z 8 12", 8, true, true},
		{"12 (sh) S", 0, false, false},
		{"", 0, false, false},
	}
	for _, test := range tests {
		p, ok := parseStat(test.text)
		if ok != test.ok || p.parent != test.parent || p.ended != test.ended {
			t.Errorf("%q: got %+v, %v", test.text, p, ok)
		}
	}
}

func TestWithSCP(t *testing.T) {
	env := []string{"PATH=/bin", "A=b"}
	if got := withSCP(env, "scp -t x"); got[len(got)-1] != "PATH=/bin:"+programDir() {
		t.Errorf("got %v; want our scp after the image's", got)
	}
	if got := withSCP(env, "echo scp"); len(got) != 2 {
		t.Errorf("got %v; want nothing added", got)
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen within a minute")
		}
		<-time.After(10 * time.Millisecond)
	}
}
