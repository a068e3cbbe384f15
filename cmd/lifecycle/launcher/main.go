//go:build linux

// The launcher command prepares a buildpack app's environment and becomes its
// start command. It is kept apart from the lifecycle command because its start
// is on the path of each instance, so it may import little.
package main

import (
	"os"

	"cupola/runtime/lifecycle/launcher"
)

func main() { os.Exit(launcher.Main(os.Args)) }
