package lrp

import "cupola/runtime/pattern"

// copyFailure is Diego's text, without the space for a file that has no name.
var copyFailure = pattern.Lazy(`^Copying .+ into the container failed: `)

// IsLogged reports whether the reason of a failure is in the container's log: the cell
// writes there that a file with a name could not be copied (executor: download_step.go).
func IsLogged(reason string) bool { return copyFailure().MatchString(reason) }
