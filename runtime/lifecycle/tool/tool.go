// Package tool is the userland of a stack that has none: the core commands of
// u-root and small ones of our own, chosen by the name the program is called
// by. They do what profile scripts and simple start commands ask of them and
// are no replacement for a distribution's.
package tool

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"

	"github.com/u-root/u-root/pkg/core"
	"github.com/u-root/u-root/pkg/core/base64"
	"github.com/u-root/u-root/pkg/core/cat"
	"github.com/u-root/u-root/pkg/core/chmod"
	"github.com/u-root/u-root/pkg/core/find"
	"github.com/u-root/u-root/pkg/core/gzip"
	"github.com/u-root/u-root/pkg/core/ls"
	"github.com/u-root/u-root/pkg/core/mkdir"
	"github.com/u-root/u-root/pkg/core/mv"
	"github.com/u-root/u-root/pkg/core/rm"
	"github.com/u-root/u-root/pkg/core/shasum"
	"github.com/u-root/u-root/pkg/core/touch"
	"github.com/u-root/u-root/pkg/core/xargs"
)

// streams are a tool's standard descriptors.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// tool runs with the arguments after its name.
type tool func(s streams, args []string) error

// status is an error that is only an exit code; the tool has said the rest.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

func tools() map[string]tool {
	all := map[string]tool{
		"base64": uroot(base64.New), "cat": uroot(cat.New), "chmod": uroot(chmod.New), "find": uroot(find.New),
		"ls": uroot(ls.New), "mkdir": uroot(mkdir.New), "mv": uroot(mv.New), "rm": uroot(rm.New),
		"shasum": uroot(shasum.New), "touch": uroot(touch.New), "xargs": uroot(xargs.New),
	}
	for _, name := range []string{"gzip", "gunzip", "gzcat", "zcat"} {
		all[name] = uroot(func() core.Command { return gzip.New(name) })
	}
	maps.Copy(all, small())
	maps.Copy(all, text())
	maps.Copy(all, files())
	return all
}

// uroot makes a tool of one of u-root's commands.
func uroot(newCommand func() core.Command) tool {
	return func(s streams, args []string) error {
		c := newCommand()
		c.SetIO(s.in, s.out, s.err)
		return c.Run(args...)
	}
}

// Names lists the tools, sorted.
func Names() []string { return slices.Sorted(maps.Keys(tools())) }

// Main runs the tool that argv[0] names and returns its exit code; ok is
// false when there is none.
func Main(argv []string) (exit int, ok bool) {
	t, ok := tools()[argv[0]]
	if !ok {
		return 0, false
	}
	return run(t, argv, streams{os.Stdin, os.Stdout, os.Stderr}), true
}

func run(t tool, argv []string, s streams) int {
	err := t(s, argv[1:])
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[status](err); ok {
		return int(code)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	fmt.Fprintf(s.err, "%s: %v\n", argv[0], err)
	return 1
}
