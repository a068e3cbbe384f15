//go:build linux

// The init command starts every container: as `init` it completes the sandbox
// and becomes the app, as `launcher` it prepares a buildpack app's environment
// first, as `idle` it is the first process of a container that has none of its
// own. It is kept apart from the lifecycle command because its start is on
// the path of each instance, so it may import little.
package main

import (
	"os"
	"path/filepath"

	"cupola/runtime/lifecycle/boot"
	"cupola/runtime/lifecycle/launcher"
)

func main() {
	args := os.Args
	if filepath.Base(args[0]) != "launcher" && len(args) > 1 && args[1] == "launcher" {
		args = args[1:]
	}
	if filepath.Base(args[0]) == "launcher" {
		os.Exit(launcher.Main(args))
	}
	if len(args) > 1 && args[1] == "idle" {
		boot.Idle()
	}
	if len(args) > 1 && args[1] == "init" {
		args = args[1:]
	}
	os.Exit(boot.Main(args[1:]))
}
