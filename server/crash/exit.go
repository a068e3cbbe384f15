package crash

import (
	"fmt"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
)

// What Diego says of a process that ended well, though its container should go on.
const (
	codependent = "Codependent step exited"
	goodEnd     = "The app ended without an error: its process must go on running"
	goodEndMend = "For work that ends use cf run-task, or scale the process to 0 instances"
)

func isGoodEnd(description string) bool { return strings.HasSuffix(description, codependent) }

var status = pattern.Lazy(`status (\d+)`)

// signals are what ends processes, in words, with what to do.
var signals = map[int]string{
	1: "the terminal closed", 2: "interrupted",
	4:  "invalid instruction: it is built for a newer processor than this machine's, build it for the oldest one",
	6:  "it aborted itself: its last lines name the check or the fatal error of its runtime",
	7:  "bus error: a file that it has mapped became shorter, or its disk is full",
	8:  "arithmetic error: it divided by zero",
	9:  "killed, and not for memory: look for kill in its scripts, and for what else runs in its container",
	11: "it accessed memory that is not its own: build its native modules on the app's stack again, or find the fault with a debugger",
	13: "it wrote to a closed pipe: what read its output has ended", 15: "asked to end",
}

// signalText is a suffix with the signal that an exit code stands for, in words; "" of one that stands for none.
func signalText(digits string) string {
	code, _ := strconv.Atoi(digits)
	if text := signals[code-128]; text != "" {
		return fmt.Sprintf(". Signal %d: %s", code-128, text)
	}
	return ""
}

// codeText is an exit code in words, as shells and kernels use them.
func codeText(digits string, outOfMemory bool) string {
	code, _ := strconv.Atoi(digits)
	switch {
	case outOfMemory:
		return "signal 9: killed, because its memory was used up"
	case code == 0:
		return "the program ended without an error, though it should go on running"
	case code == 126:
		return "the command was found and cannot be executed"
	case code == 127:
		return "the command was not found"
	case code > 128 && signals[code-128] != "":
		return fmt.Sprintf("signal %d: %s", code-128, signals[code-128])
	case code > 128 && code < 193:
		return fmt.Sprintf("signal %d", code-128)
	}
	return "the program ended with its own error"
}
