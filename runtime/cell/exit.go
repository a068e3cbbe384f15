package cell

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/lrp"
)

// Diego's texts for containers that ended.
const (
	codependent = "Codependent step exited"
	outOfMemory = " (out of memory)"
)

// daemonEnded is the reason for giving up a process that an earlier daemon was
// starting: it is unknown whether it ran.
const daemonEnded = "failed to run container: its daemon ended"

// exitLine is the line that Diego writes to the app's log when a process ends.
func exitLine(x container.Exit, exceeded time.Duration) string {
	if !x.Known {
		return "Exit status unknown"
	}
	line := fmt.Sprintf("Exit status %d", x.Code)
	if exceeded > 0 {
		line += fmt.Sprintf(" (exceeded %s graceful shutdown interval)", exceeded)
	}
	if x.OOM && x.Code != 0 {
		line += outOfMemory
	}
	return line
}

// exitedWith is the reason that a bad end of a process is for a crash; none
// for a good end.
func exitedWith(source string, x container.Exit) []string {
	switch {
	case !x.Known && x.OOM:
		return []string{source + ": Exited with unknown status" + outOfMemory}
	case !x.Known:
		return []string{source + ": Exited with unknown status"}
	case x.Code == 0:
		return nil
	case x.OOM:
		return []string{fmt.Sprintf("%s: Exited with status %d", source, x.Code) + outOfMemory}
	}
	return []string{fmt.Sprintf("%s: Exited with status %d", source, x.Code)}
}

// exit is what the event says of end.
func (i *instance) exit(end ending) lrp.Exit {
	x := lrp.Exit{Code: end.Exit.Code, Stopped: end.Stopped, Failed: end.Failed, Reason: strings.Join(end.Reasons, "; ")}
	if !end.Exit.Known {
		x.Code = -1
	}
	x.Unknown = !end.Exit.Known || slices.Contains(end.Reasons, daemonEnded)
	if i.spec.Kind == lrp.KindInstance {
		x.Failed = !end.Stopped
	} else if end.Stopped {
		x.Failed = true
	}
	return x
}
