//go:build linux

// The lifecycle command is everything that runs inside containers beside the
// app, but for what its start needs (see init and launcher): builder, healthcheck, what
// `cf ssh` talks to, the system buildpacks and the tools of stacks that have
// none. It does what the name it is called by says, or else its first argument.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cupola/runtime/lifecycle/builder"
	"cupola/runtime/lifecycle/buildpack"
	"cupola/runtime/lifecycle/directory"
	"cupola/runtime/lifecycle/healthcheck"
	"cupola/runtime/lifecycle/scp"
	"cupola/runtime/lifecycle/shell"
	"cupola/runtime/lifecycle/sshd"
	"cupola/runtime/lifecycle/static"
	"cupola/runtime/lifecycle/tool"
)

func main() {
	os.Exit(run(os.Args))
}

// run dispatches argv; a program name that is not one of ours defers to the
// first argument.
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
	fmt.Fprintln(os.Stderr, "usage: lifecycle builder|buildpack|directories|healthcheck|launcher|scp|sh|sshd|static|<tool> …")
	return 2
}

func dispatch(argv []string) (code int, ok bool) {
	switch args := argv[1:]; argv[0] {
	case "builder":
		return builder.Main(args), true
	case "buildpack":
		return buildpack.Main(args), true
	case "directories":
		return directory.Main(args), true
	case "static":
		return static.Main(args), true
	case "healthcheck":
		return healthcheck.Main(args), true
	case "launcher":
		return shell.Launcher().Main(argv), true
	case "sshd":
		return sshd.Main(args), true
	case "scp":
		return scp.Main(args), true
	case "sh", "shell":
		return shell.Main(argv), true
	}
	return tool.Main(argv)
}
