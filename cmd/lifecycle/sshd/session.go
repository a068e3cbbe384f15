package sshd

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// maxEnv bounds the variables that a client may set.
const maxEnv = 128

// session is one channel of type session: one program, or the sftp subsystem.
type session struct {
	*sshd
	channel ssh.Channel
	env     []string
	set     int // how many of env the client set

	mu      sync.Mutex
	tty     *terminal // nil where none was asked for
	program *exec.Cmd // nil before it runs
	busy    bool      // it does what it was opened for
}

// session serves a channel until it ends.
func (s *sshd) session(c ssh.NewChannel) {
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	n := &session{sshd: s, channel: channel, env: s.env}
	for r := range requests {
		ok, then := n.handle(r)
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		// Only now, so that the end is not reported before the start.
		if then != nil {
			go then()
		}
	}
	n.hangUp()
}

// handle does what a request asks and reports whether it could. What goes on
// after the answer is then.
func (n *session) handle(r *ssh.Request) (ok bool, then func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch r.Type {
	case "env":
		return n.setEnv(r.Payload), nil
	case "pty-req":
		return n.requestTerminal(r.Payload), nil
	case "window-change":
		return n.resize(r.Payload), nil
	case "signal":
		return n.signal(r.Payload), nil
	case "shell", "exec", "subsystem":
		if n.busy {
			return false, nil
		}
		then = n.begin(r)
		n.busy = then != nil
		return n.busy, then
	}
	return false, nil // agents, X11, and what is yet to be invented
}

func (n *session) begin(r *ssh.Request) (then func()) {
	var arg struct{ Text string }
	if r.Type != "shell" && ssh.Unmarshal(r.Payload, &arg) != nil {
		return nil
	}
	switch r.Type {
	case "subsystem":
		if arg.Text != "sftp" {
			return nil
		}
		return n.serveFiles
	case "exec":
		return n.run("-c", arg.Text)
	}
	return n.run()
}

func (n *session) setEnv(payload []byte) bool {
	var v struct{ Name, Value string }
	if ssh.Unmarshal(payload, &v) != nil || n.busy || n.set >= maxEnv || v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.Contains(v.Value, "\x00") {
		return false
	}
	n.set++
	n.env = append(n.env[:len(n.env):len(n.env)], v.Name+"="+v.Value)
	return true
}

// run starts the user's shell with args. The result waits for its end and
// reports it to the client, or that the shell could not be started.
func (n *session) run(args ...string) func() {
	cmd := exec.Command(shellPath(), args...)
	cmd.Env, cmd.Dir = n.env, n.home
	if len(args) > 0 {
		cmd.Env = withSCP(cmd.Env, args[1])
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	wait, err := n.start(cmd)
	if err != nil {
		return func() {
			_, _ = io.WriteString(n.channel.Stderr(), err.Error()+"\n")
			n.exit(exitCannotRun)
		}
	}
	n.program = cmd
	return func() { n.tell(wait()) }
}

// exitCannotRun is a shell's code for a program that could not be started.
const exitCannotRun = 126

// start starts cmd on the terminal or on the channel; wait waits for its end
// and for the last of its output.
func (n *session) start(cmd *exec.Cmd) (wait func() error, err error) {
	if n.tty != nil {
		return n.tty.run(cmd, n.kin, n.channel)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = n.channel, n.channel.Stderr()
	if err := n.kin.start(cmd); err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(stdin, n.channel)
		_ = stdin.Close()
	}()
	return func() error { return n.kin.wait(cmd) }, nil
}

// tell says how the program ended, as RFC 4254 has it, and closes the channel.
func (n *session) tell(err error) {
	ended, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		n.exit(0)
		return
	case !ok:
		n.exit(exitCannotRun)
		return
	}
	status, _ := ended.Sys().(syscall.WaitStatus)
	if !status.Signaled() {
		n.exit(uint32(ended.ExitCode()))
		return
	}
	end := struct {
		Name           string
		Core           bool
		Text, Language string
	}{Name: signalName(status.Signal()), Core: status.CoreDump()}
	_, _ = n.channel.SendRequest("exit-signal", false, ssh.Marshal(end))
	n.closeChannel()
}

func (n *session) exit(code uint32) {
	_, _ = n.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
	n.closeChannel()
}

func (n *session) closeChannel() {
	_ = n.channel.CloseWrite()
	_ = n.channel.Close()
}

// hangUp tells the program, if it still runs, that its user has gone.
func (n *session) hangUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kill(unix.SIGHUP)
	if n.tty != nil {
		n.tty.close()
	}
}

// kill signals the program and what it has started.
func (n *session) kill(sig syscall.Signal) bool {
	return n.program != nil && n.kin.signal(n.program, sig)
}

func (n *session) signal(payload []byte) bool {
	var arg struct{ Name string }
	if ssh.Unmarshal(payload, &arg) != nil {
		return false
	}
	sig := unix.SignalNum("SIG" + arg.Name)
	return sig != 0 && n.kill(sig)
}

// signalName is the name without SIG, which is how SSH spells it.
func signalName(sig syscall.Signal) string {
	return strings.TrimPrefix(unix.SignalName(sig), "SIG")
}

// serveFiles is the sftp subsystem, with the rights that the app has.
func (n *session) serveFiles() {
	server, err := sftp.NewServer(n.channel, sftp.WithServerWorkingDirectory(n.home))
	if err != nil {
		n.exit(1)
		return
	}
	err = server.Serve()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
		n.exit(1)
		return
	}
	n.exit(0)
}
