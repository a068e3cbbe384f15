//go:build linux && cgo

package main

// The engine executes this program again as the first process of each
// container, so it must weigh what the daemon does.
import _ "cupola/server"
