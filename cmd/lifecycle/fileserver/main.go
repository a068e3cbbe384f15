// The fileserver command serves the files of a static app: the staticfile
// buildpack copies it into the droplet. It is kept apart from the lifecycle
// command because it is in each such droplet and on the path of each instance.
package main

import (
	"os"

	"cupola/cmd/lifecycle/static"
)

func main() { os.Exit(static.Main(os.Args[1:])) }
