package main

import (
	"fmt"
	"runtime"

	"cupola/cmd/cupola/command"
	"cupola/server/api"
)

type versionCmd struct{}

// Run prints the version, and those that matter to clients.
func (versionCmd) Run(e *command.Env) error {
	_, err := fmt.Fprintf(e.Out, "cupola %s (CF API %s, %s, %s/%s)\n", command.BuildVersion(), api.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
