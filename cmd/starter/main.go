// The starter command makes one container, or enters one, for the daemon: see
// package cupola/runtime/container/starter. It is the only importer of
// libcontainer.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // sets up the namespaces in C, before Go starts its threads

	"cupola/runtime/container/starter"
)

// init turns the process into a container's init when libcontainer has
// executed this program again to be one. Nothing else of it runs then.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "init" && os.Getenv("_LIBCONTAINER_INITPIPE") != "" {
		libcontainer.Init()
	}
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "starter:", err)
		os.Exit(1)
	}
}

// serve answers one request, and returns when in ends.
func serve(in io.Reader, out io.Writer) error {
	var request starter.Request
	d := json.NewDecoder(in)
	// The program and the daemon are built together, or not at all.
	d.DisallowUnknownFields()
	if err := d.Decode(&request); err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	var answer starter.Answer
	var err error
	if f := request.Filter; f != nil {
		err = cgroups.DevicesSetV2(f.Cgroup, &cgroups.Resources{Devices: f.Devices})
	} else {
		answer.PID, err = start(request)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	if err := json.NewEncoder(out).Encode(answer); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	_, err = io.Copy(io.Discard, in)
	return err
}
