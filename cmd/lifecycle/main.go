// The lifecycle command is everything that runs inside containers besides the
// app, but for what its start needs (see init, launcher and fileserver): builder, healthcheck, what
// `cf ssh` talks to, the system buildpacks and the tools of stacks that have
// none. It does what the name it is called by says, or else its first argument.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cupola/cmd/lifecycle/builder"
	"cupola/cmd/lifecycle/buildpack"
	"cupola/cmd/lifecycle/cnb"
	"cupola/cmd/lifecycle/directory"
	"cupola/cmd/lifecycle/healthcheck"
	"cupola/cmd/lifecycle/jobscript"
	"cupola/cmd/lifecycle/jvm"
	"cupola/cmd/lifecycle/mail"
	"cupola/cmd/lifecycle/monit"
	"cupola/cmd/lifecycle/nginx"
	"cupola/cmd/lifecycle/phpapp"
	"cupola/cmd/lifecycle/proxy"
	"cupola/cmd/lifecycle/scp"
	"cupola/cmd/lifecycle/shell"
	"cupola/cmd/lifecycle/sshd"
	"cupola/cmd/lifecycle/tool"
	"cupola/runtime/contract"
)

func main() {
	os.Exit(run(os.Args))
}

// run dispatches argv; if argv[0] names no command, the first argument
// does.
func run(argv []string) int {
	for range 2 {
		if len(argv) == 0 {
			break
		}
		// A login shell's name starts with a dash.
		argv[0] = strings.TrimPrefix(filepath.Base(argv[0]), "-")
		if code, ok := dispatch(argv); ok {
			return code
		}
		argv = argv[1:]
	}
	fmt.Fprintln(os.Stderr, "usage: lifecycle builder|buildpack|directories|healthcheck|launcher|mail|monit|proxy|scp|script|sh|sshd|<tool> …")
	return 2
}

func dispatch(argv []string) (code int, ok bool) {
	switch args := argv[1:]; argv[0] {
	case "builder":
		return builder.Main(args), true
	case "buildpack":
		return buildpack.Main(args), true
	case contract.CommandCNBBuilder:
		return cnb.Main(args), true
	case contract.CommandCNBLauncher:
		return cnb.Launch(argv), true
	case contract.CommandDirectories:
		return directory.Main(args), true
	case "healthcheck":
		return healthcheck.Main(args), true
	case "launcher":
		return shell.Launcher().Main(argv), true
	case contract.CommandMail:
		return mail.Main(args), true
	case contract.CommandSSHD:
		return sshd.Main(args), true
	case contract.CommandProxy:
		return proxy.Main(args), true
	case contract.CommandMonit:
		return monit.Main(args), true
	case contract.CommandScript:
		return jobscript.Main(args), true
	case "scp":
		return scp.Main(args), true
	case nginx.Varify:
		return nginx.Main(args), true
	case phpapp.Start:
		return phpapp.Main(args), true
	case "sh", "shell":
		return shell.Main(argv), true
	}
	if code, ok := jvm.Main(argv); ok {
		return code, true
	}
	return tool.Main(argv)
}
