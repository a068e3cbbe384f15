//go:build linux && cgo

package container

import (
	"os"
	"runtime"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // refuses devices on cgroup v2
	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // sets up the namespaces in C, before Go starts its threads
)

// init turns the process into a container's init when libcontainer has
// executed this binary again to be one. Nothing else of the program runs then.
//
// Otherwise it keeps the main goroutine on the first thread, and so all others
// off it. libcontainer enters mount namespaces on threads that it then lets end,
// and the first thread cannot: it would stay there, keep the namespace's mounts
// and be what /proc/self shows.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "init" && os.Getenv("_LIBCONTAINER_INITPIPE") != "" {
		libcontainer.Init()
	}
	runtime.LockOSThread()
	// On v1, where libcontainer is given no cgroup, cgroupTree refuses devices.
	cgroups.DevicesSetV1 = nil
}
