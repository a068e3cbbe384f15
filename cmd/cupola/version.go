package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"cupola/server/api"
)

type versionCmd struct{}

// Run tells the version, and those that matter to clients.
func (versionCmd) Run(e *env) error {
	_, err := fmt.Fprintf(e.out, "cupola %s (CF API %s, %s, %s/%s)\n", buildVersion(), api.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// release is set by the Makefile.
var release = ""

// buildVersion is the release, else the commit it was built from.
func buildVersion() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
