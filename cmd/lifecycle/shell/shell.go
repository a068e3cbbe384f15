// Package shell interprets shell scripts where the container has no shell.
// It is good for profile scripts and start commands and, as `sh`, for simple
// scripts; it is not bash, and nothing should install it under that name.
package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Exit codes of every shell.
const (
	exitUsage     = 2
	exitCannotRun = 126
	maxScript     = 16 << 20 // bytes of a script
)

// Marks that take the place of a command's name, or stand before it. No
// script can spell them by accident.
const (
	becomeMark  = "\x01become"   // the script's last command
	execMark    = "\x01exec"     // exec program …
	builtinMark = "\x01builtin-" // before the name of a builtin in builtins
)

// shell is one interpreter and the script it is running.
type shell struct {
	runner *interp.Runner
}

// newShell returns an interpreter on this process's descriptors.
func newShell(env []string, dir string, params ...string) (*shell, error) {
	s := &shell{}
	runner, err := interp.New(
		interp.Env(expand.ListEnviron(env...)),
		interp.Dir(dir),
		interp.StdIO(os.Stdin, os.Stdout, os.Stderr),
		interp.Params(params...),
		interp.CallHandler(s.call),
		interp.ExecHandlers(s.exec),
	)
	if err != nil {
		return nil, err
	}
	s.runner = runner
	// Every shell exports it; the interpreter only sets it.
	exportPWD := &syntax.DeclClause{Variant: &syntax.Lit{Value: "export"}, Args: []*syntax.Assign{{Naked: true, Name: &syntax.Lit{Value: "PWD"}}}}
	return s, runner.Run(context.Background(), exportPWD)
}

// run interprets a script and returns its exit code. With replace, the
// process becomes the script's last command where that changes nothing else,
// and run does not return.
func (s *shell) run(script io.Reader, name string, replace bool) int {
	text, err := io.ReadAll(io.LimitReader(script, maxScript+1))
	if err == nil && len(text) > maxScript {
		err = fmt.Errorf("script is larger than %d bytes", maxScript)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return exitCannotRun
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(string(text)), name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	if replace {
		markReplacements(file)
	}
	return code(s.runner.Run(context.Background(), file))
}

// code turns the interpreter's result into an exit code.
func code(err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[interp.ExitStatus](err); ok {
		return int(status)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// exported is the environment a command started now would have.
func (s *shell) exported(env []string) []string {
	names := map[string]string{}
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			names[name] = value
		}
	}
	for name, v := range s.runner.Vars {
		delete(names, name)
		if v.Exported && v.IsSet() && v.Kind == expand.String {
			names[name] = v.Str
		}
	}
	return environ(names)
}
