package deployment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"cupola/cmd/cupola/command"
)

type sshCmd struct {
	boshOne
	Instance string `arg:"" optional:"" help:"An instance group, or an instance like nats/0; all by default." placeholder:"GROUP[/INDEX|GUID]"`
	Command  string `help:"Run this command instead of a shell; on each of the instances." short:"c" placeholder:"COMMAND"`
	Results  bool   `help:"Collect the results of --command in a table." short:"r"`
	Process  string `help:"Enter the container of this process; by default, the first one." placeholder:"[JOB/]PROCESS"`
	JSON     bool   `help:"Print the results as JSON." name:"json"`
}

// maxEntered is how many instances are entered at once.
const maxEntered = 5

// Run opens a shell in an instance, or runs a command in several.
func (c *sshCmd) Run(e *command.Env) error {
	if c.Command == "" && (c.Results || c.JSON) {
		return errors.New("--results and --json need --command")
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	all, err := instancesOf(e, api, c.Deployment, c.Instance)
	if err != nil {
		return err
	}
	if c.Command == "" && len(all) > 1 {
		return fmt.Errorf("interactive ssh is for one instance, and %d match: give one, like %s", len(all), all[0].name())
	}
	to, err := findEntrance(e, api)
	if err != nil {
		return err
	}
	if c.Command == "" {
		return c.shell(e, to, all[0])
	}
	results := c.runAll(e, to, all)
	switch {
	case c.JSON:
		err = command.WriteJSON(e.Out, results)
	case c.Results:
		err = writeResults(e, results)
	}
	if err != nil {
		return err
	}
	return exitOf(e, results)
}

// sshResult is how a command ended in an instance.
type sshResult struct {
	Instance string `json:"instance"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	ExitCode int    `json:"exit_code"`
	Error    string `json:"error"`
}

// exitOf is the exit code: that of the command in the only instance, or 1 if it failed
// in any.
func exitOf(e *command.Env, results []sshResult) error {
	failed := 0
	for _, r := range results {
		if r.Error != "" {
			fmt.Fprintf(e.Err, "%s: %s\n", r.Instance, command.Printable(r.Error))
		}
		if r.Error != "" || r.ExitCode != 0 {
			failed = max(r.ExitCode, 1)
		}
	}
	switch {
	case failed == 0:
		return nil
	case len(results) > 1:
		failed = 1
	}
	return command.ExitCode(failed)
}

func writeResults(e *command.Env, results []sshResult) error {
	t := &command.Table{Width: command.Width(e)}
	t.Add("INSTANCE", "EXIT CODE", "ERROR", "STDERR", "STDOUT")
	for _, r := range results {
		t.Add(r.Instance, strconv.Itoa(r.ExitCode), orDash(r.Error), orDash(oneLine(r.Stderr)), oneLine(r.Stdout))
	}
	return t.Write(e.Out)
}

func oneLine(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", " ")
}

// runAll runs the command in some instances, a few at once.
func (c *sshCmd) runAll(e *command.Env, to entrance, all []boshInstanceView) []sshResult {
	results := make([]sshResult, len(all))
	places := make(chan struct{}, maxEntered)
	var printing sync.Mutex
	var running sync.WaitGroup
	for n, i := range all {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			results[n] = c.runOne(e, to, i, &printing)
		})
	}
	running.Wait()
	return results
}

// runOne runs the command in an instance. Unless results are collected, its lines are
// printed as they come.
func (c *sshCmd) runOne(e *command.Env, to entrance, i boshInstanceView, printing *sync.Mutex) sshResult {
	r := sshResult{Instance: i.name()}
	var stdout, stderr bytes.Buffer
	out, errs := io.Writer(&stdout), io.Writer(&stderr)
	if !c.Results && !c.JSON {
		o, f := &lines{to: e.Out, prefix: r.Instance + ": stdout | ", mu: printing}, &lines{to: e.Out, prefix: r.Instance + ": stderr | ", mu: printing}
		defer o.flush()
		defer f.flush()
		out, errs = o, f
	}
	code, err := c.execute(e, to, i, out, errs)
	if err != nil {
		r.Error = err.Error()
	}
	r.ExitCode, r.Stdout, r.Stderr = code, stdout.String(), stderr.String()
	return r
}

func (c *sshCmd) execute(e *command.Env, to entrance, i boshInstanceView, out, errs io.Writer) (code int, err error) {
	session, end, err := c.open(e, to, i)
	if err != nil {
		return 0, err
	}
	defer end()
	defer context.AfterFunc(e.Ctx, end)()
	session.Stdout, session.Stderr = out, errs
	return exitCode(session.Run(c.Command))
}

// open opens a session in the container that was chosen of an instance, until end is
// called.
func (c *sshCmd) open(e *command.Env, to entrance, i boshInstanceView) (session *ssh.Session, end func(), err error) {
	p, err := i.process(c.Process)
	if err != nil {
		return nil, nil, err
	}
	client, err := to.enter(e, p)
	if err != nil {
		return nil, nil, err
	}
	if session, err = client.NewSession(); err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	return session, func() { _ = client.Close() }, nil
}

// exitCode is a session's end as a shell tells it: 128 and the signal for a program that
// one ended.
func exitCode(err error) (int, error) {
	status, ok := errors.AsType[*ssh.ExitError](err)
	switch {
	case !ok:
		return 0, err
	case status.Signal() != "":
		return 128 + int(unix.SignalNum("SIG"+status.Signal())), nil
	}
	return status.ExitStatus(), nil
}

// shell joins the terminal and a login shell in an instance. Without a terminal, the
// shell reads its commands from the standard input.
func (c *sshCmd) shell(e *command.Env, to entrance, i boshInstanceView) error {
	session, end, err := c.open(e, to, i)
	if err != nil {
		return err
	}
	defer end()
	session.Stdin, session.Stdout, session.Stderr = os.Stdin, e.Out, e.Err
	if command.IsTerminal(os.Stdin) {
		restore, err := c.terminal(session)
		if err != nil {
			return err
		}
		defer restore()
	}
	if err := session.Shell(); err != nil {
		return err
	}
	code, err := exitCode(session.Wait())
	if err == nil && code != 0 {
		return command.ExitCode(code)
	}
	return err
}

// terminal gives a session a terminal of the size of this one, which passes on all
// keys until restore is called.
func (c *sshCmd) terminal(session *ssh.Session) (restore func(), err error) {
	const fd = 0
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	columns, rows := terminalSize(fd)
	kind := os.Getenv("TERM")
	if kind == "" {
		kind = "xterm"
	}
	if err := session.RequestPty(kind, rows, columns, ssh.TerminalModes{}); err != nil {
		return nil, err
	}
	raw := *was
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return nil, err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	go func() {
		for range resized {
			columns, rows := terminalSize(fd)
			_ = session.WindowChange(rows, columns) // the shell may have ended
		}
	}()
	return func() {
		signal.Stop(resized)
		close(resized)
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, was)
	}, nil
}

func terminalSize(fd int) (columns, rows int) {
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// lines writes whole lines with a prefix.
type lines struct {
	to     io.Writer
	prefix string
	mu     *sync.Mutex // of to
	rest   []byte
}

// maxLine is where a longer line is broken.
const maxLine = 64 << 10

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		at := bytes.IndexByte(l.rest, '\n')
		if at < 0 && len(l.rest) < maxLine {
			return len(p), nil
		}
		if at < 0 {
			at = len(l.rest) - 1
		}
		l.line(l.rest[:at+1])
		l.rest = l.rest[at+1:]
	}
}

func (l *lines) line(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.to, "%s%s\n", l.prefix, strings.Map(printedOrTab, string(bytes.TrimRight(text, "\r\n"))))
}

func printedOrTab(r rune) rune {
	if r == '\t' {
		return r
	}
	return command.Printed(r)
}

// flush writes a last line that has no end.
func (l *lines) flush() {
	if len(l.rest) > 0 {
		l.line(l.rest)
		l.rest = nil
	}
}
