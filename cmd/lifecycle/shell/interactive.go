package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/syntax"
)

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// prompts are what a user is asked with: for a command, and for the rest of
// one.
const (
	prompt     = "$ "
	morePrompt = "> "
)

// talk runs the commands that a user types, until `exit` or the end of input.
// The terminal edits the lines; there are no jobs.
func (s *shell) talk(in io.Reader, out io.Writer) int {
	t := &talker{shell: s, out: out}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, unix.SIGINT)
	defer signal.Stop(interrupts)
	go func() {
		for range interrupts {
			t.interrupt()
		}
	}()
	for {
		ended, err := t.converse(in)
		if ended {
			return t.code
		}
		if err == nil || errors.Is(err, io.EOF) {
			fmt.Fprintln(out)
			return t.code
		}
		fmt.Fprintln(out, err)
		t.code = exitUsage
	}
}

// talker is a conversation with a user.
type talker struct {
	*shell
	out  io.Writer
	code int // of the last command

	mu     sync.Mutex
	cancel context.CancelFunc // of the running command; nil while the user types
}

// interrupt is Ctrl-C: the terminal tells programs itself, and not builtins.
func (t *talker) interrupt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
		return
	}
	fmt.Fprint(t.out, "\n"+prompt)
}

// converse runs commands up to one that cannot be parsed, which is its error,
// or that ends the shell.
func (t *talker) converse(in io.Reader) (ended bool, err error) {
	fmt.Fprint(t.out, prompt)
	parser := syntax.NewParser()
	for statements, err := range parser.InteractiveSeq(in) {
		if err != nil {
			return false, err
		}
		if parser.Incomplete() {
			fmt.Fprint(t.out, morePrompt)
			continue
		}
		if slices.ContainsFunc(statements, t.command) {
			return true, nil
		}
		fmt.Fprint(t.out, prompt)
	}
	return false, nil
}

// command runs one command, and reports whether it ended the shell.
func (t *talker) command(statement *syntax.Stmt) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t.setCancel(cancel)
	err := t.runner.Run(ctx, statement)
	t.setCancel(nil)
	if ctx.Err() != nil {
		fmt.Fprintln(t.out) // after the ^C that the terminal shows
		t.code = exitInterrupted
		return false
	}
	t.code = code(err)
	return t.runner.Exited()
}

func (t *talker) setCancel(cancel context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel = cancel
}

// exitInterrupted is every shell's code for a command ended by SIGINT.
const exitInterrupted = 128 + 2
