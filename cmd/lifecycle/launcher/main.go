// The launcher command prepares a buildpack app's environment and becomes its
// start command. It is kept apart from the lifecycle command because its start
// is on the path of each instance, so it may import little.
package main

import (
	"os"

	"cupola/cmd/lifecycle/launch"
)

func main() { os.Exit(launch.Main(os.Args)) }
