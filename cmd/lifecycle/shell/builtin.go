package shell

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// builtins are those that the interpreter knows by name alone.
var builtins = map[string]func(interp.HandlerContext, []string) error{
	"kill":  kill,
	"umask": umask,
}

// kill sends a signal, given by -NAME, -NUMBER or -s NAME, to processes.
func kill(hc interp.HandlerContext, args []string) error {
	signal := unix.SIGTERM
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--" {
		name := args[0][1:]
		args = args[1:]
		if name == "s" && len(args) > 0 {
			name, args = args[0], args[1:]
		}
		var ok bool
		if signal, ok = signalNumber(name); !ok {
			return report(hc, "kill: %s: invalid signal specification", name)
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return report(hc, "kill: usage: kill [-s sigspec | -sigspec] pid …")
	}
	var failed error
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil {
			failed = report(hc, "kill: %s: arguments must be process IDs", arg)
		} else if err := unix.Kill(pid, signal); err != nil {
			failed = report(hc, "kill: (%d) - %v", pid, err)
		}
	}
	return failed
}

func signalNumber(name string) (unix.Signal, bool) {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < 65 {
		return unix.Signal(n), true
	}
	n := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	return n, n != 0
}

// umask shows or sets the file mode creation mask, in octal.
func umask(hc interp.HandlerContext, args []string) error {
	if len(args) == 0 {
		old := unix.Umask(0)
		unix.Umask(old)
		fmt.Fprintf(hc.Stdout, "%04o\n", old)
		return nil
	}
	mask, err := strconv.ParseUint(args[0], 8, 9)
	if err != nil {
		return report(hc, "umask: %s: octal number out of range", args[0])
	}
	unix.Umask(int(mask))
	return nil
}

func report(hc interp.HandlerContext, format string, args ...any) error {
	fmt.Fprintf(hc.Stderr, format+"\n", args...)
	return interp.ExitStatus(1)
}
