//go:build linux && cgo

package container

import (
	"os"

	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // sets up the namespaces in C, before Go starts its threads
)

// init turns the process into a container's init when libcontainer has
// executed this binary again to be one. Nothing else of the program runs then.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "init" && os.Getenv("_LIBCONTAINER_INITPIPE") != "" {
		libcontainer.Init()
	}
}
