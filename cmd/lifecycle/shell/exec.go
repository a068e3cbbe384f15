package shell

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"cupola/cmd/lifecycle/tool"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// call sees every simple command after its expansion. It takes the mark off
// what the shell does itself, and gives builtins that the interpreter lacks
// another name, under which exec finds them.
func (s *shell) call(_ context.Context, args []string) ([]string, error) {
	if args[0] == becomeMark {
		if len(args) == 1 {
			return []string{":"}, nil // expanded to nothing
		}
		if s.runner.Funcs[args[1]] == nil && !interp.IsBuiltin(args[1]) {
			return args, nil
		}
		args = args[1:]
	}
	if _, ok := builtins[args[0]]; ok && s.runner.Funcs[args[0]] == nil {
		return append([]string{builtinMark + args[0]}, args[1:]...), nil
	}
	return args, nil
}

// exec runs commands that are not builtins of the interpreter.
func (s *shell) exec(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		hc := interp.HandlerCtx(ctx)
		mark := args[0]
		switch {
		case mark == becomeMark:
			args = args[1:]
			become(hc, args)
		case mark == execMark:
			args = args[1:]
			become(hc, args)
			// A shell that cannot exec ends.
			os.Exit(code(next(ctx, withTool(hc, args))))
		case strings.HasPrefix(mark, builtinMark):
			return builtins[strings.TrimPrefix(mark, builtinMark)](hc, args[1:])
		}
		return next(ctx, withTool(hc, args))
	}
}

// withTool turns a command that the container does not have, and this program
// does, into a call of this program: a user may want to look
// around in an image without a userland.
func withTool(hc interp.HandlerContext, args []string) []string {
	if strings.Contains(args[0], "/") || !tool.Has(args[0]) {
		return args
	}
	if _, err := interp.LookPathDir(hc.Dir, hc.Env, args[0]); err == nil {
		return args
	}
	self, err := os.Executable()
	if err != nil {
		return args
	}
	return append([]string{self}, args...)
}

// become replaces the process by args, with the environment, directory and
// descriptors that hc has. It returns only when that fails; the interpreter,
// which then starts args, meets the same fault and words it.
func become(hc interp.HandlerContext, args []string) {
	path, err := interp.LookPathDir(hc.Dir, hc.Env, args[0])
	if err != nil {
		return
	}
	env := map[string]string{}
	hc.Env.Each(func(name string, v expand.Variable) bool {
		delete(env, name)
		if v.Exported && v.IsSet() && v.Kind == expand.String {
			env[name] = v.Str
		}
		return true
	})
	if strings.Contains(args[0], "/") {
		path = args[0] // as the script spells it, so that a script sees that as $0
	}
	env["PWD"] = hc.Dir
	if os.Chdir(hc.Dir) != nil || redirect(hc.Stdin, hc.Stdout, hc.Stderr) != nil {
		return
	}
	_ = unix.Exec(path, args, environ(env))
}

// redirect makes the streams the descriptors 0, 1 and 2. All are copied up
// first, because one may be another's descriptor.
func redirect(streams ...any) error {
	var fds []int
	for _, stream := range streams {
		f, ok := stream.(*os.File)
		if !ok {
			return fmt.Errorf("stream is a %T and not a file", stream)
		}
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 10)
		if err != nil {
			return err
		}
		fds = append(fds, fd)
	}
	for i, fd := range fds {
		if err := unix.Dup3(fd, i, 0); err != nil {
			return err
		}
	}
	return nil
}

// environ turns variables into a process's environment.
func environ(vars map[string]string) []string {
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}
