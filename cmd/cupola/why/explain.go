package why

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lastLines is how many lines of an app's output are shown.
const lastLines = 10

// startMessage is what the launcher prints before it starts an app.
const startMessage = "Invoking start command."

// explain gives the cause first, then how to mend it, then what shows it.
func (f *facts) explain() (said []string) {
	states := f.states()
	switch {
	case f.build != "":
		return []string{"The last staging failed: " + f.build, "Its log: cf logs APP --recent"}
	case f.state == "STOPPED":
		return []string{"The app is stopped: start it with cf start."}
	case len(f.waits) > 0:
		return append(f.waits, states)
	case !f.isDown():
		return []string{"All instances run. " + states}
	case f.crash == nil:
		return append([]string{"No instance has crashed yet. " + states}, f.output()...)
	}
	said = append(said, fmt.Sprintf("Instance %d crashed at %s: %s", f.crash.Data.Index,
		f.crash.CreatedAt.UTC().Format("15:04:05 MST"), f.crash.Data.Description))
	said = append(said, causes(f.crash.Data.Description, f.lines)...)
	said = append(said, states)
	return append(said, f.output()...)
}

// isDown reports whether an instance does not run.
func (f *facts) isDown() bool {
	for key := range f.instances {
		if !strings.HasSuffix(key, " RUNNING") {
			return true
		}
	}
	return false
}

// states lists how many instances of a process are in which state.
func (f *facts) states() string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(f.instances)) {
		all = append(all, fmt.Sprintf("%s: %d", key, f.instances[key]))
	}
	return "Instances: " + strings.Join(all, ", ")
}

// output is what the app printed last.
func (f *facts) output() []string {
	var lines []string
	for _, l := range f.lines {
		switch {
		case !strings.HasPrefix(l.Source, "APP"):
		case l.Text == startMessage: // an instance's own output begins
			lines = nil
		default:
			lines = append(lines, "  "+l.Text)
		}
	}
	if len(lines) == 0 {
		return []string{"The app printed nothing."}
	}
	return append([]string{"The last lines of its output:"}, lines[max(0, len(lines)-lastLines):]...)
}

// patterns find the cause in the app's last output; the advice may use what matched.
var patterns = []struct {
	line   *regexp.Regexp
	advice string
}{
	{regexp.MustCompile(`(?i)exec format error`), "A program is built for another processor or system: build it for Linux on this machine's processor (uname -m)."},
	{regexp.MustCompile(`(\S+): bad interpreter`), "The interpreter in a script's first line is missing in the app's stack: $1. Push with a stack or buildpack that has it."},
	{regexp.MustCompile(`(?:env: |exec: )[‘'"]?([^\s‘’'":]+)[’'"]?:? .*(?:No such file or directory|not found|cannot execute: required file not found)`), "The program $1, or the interpreter it names, is missing in the app's stack: push with a stack or buildpack that has it."},
	{regexp.MustCompile(`(\S+): cannot execute: required file not found`), "The interpreter that the first line of $1 names, or the loader of the program, is missing in the app's stack: push with a stack or buildpack that has it, or link the program statically."},
	{regexp.MustCompile(`(\S+): (?:command )?not found`), "The command $1 is missing in the app's stack, or not in its PATH: check the start command and the buildpack."},
	{regexp.MustCompile(`(\S+): No such file or directory`), "A file is missing: $1. Check the start command, .cfignore, and the app's stack."},
	{regexp.MustCompile(`(\S+): Permission denied`), "A file may not be executed: chmod +x $1, then push again."},
	{regexp.MustCompile(`(?i)no space left on device|disk quota exceeded`), "The app used up its disk quota: give it more with cf scale -k."},
	{regexp.MustCompile(`(?i)address already in use`), "Another process of the app has the port: start one server only, on the port in $$PORT."},
	{regexp.MustCompile(`The app ran out of memory: .*`), "$0."},
}

var status = regexp.MustCompile(`status (\d+)`)

// causes says in words what a crash means.
func causes(description string, lines []Line) (said []string) {
	if _, hint, found := strings.Cut(description, "; the app listens on "); found {
		return []string{"Cause: the app listens on " + hint + "."}
	}
	if m := status.FindStringSubmatch(description); m != nil {
		code, _ := strconv.Atoi(m[1]) // it is digits
		said = append(said, "Exit status "+m[1]+": "+codeText(code)+".")
	} else if description == "" || strings.HasSuffix(description, "Codependent step exited") {
		said = append(said, "The app ended without an error: a web process must go on running. For work that ends use cf run-task, or no web process.")
	}
	if advice := adviceOf(lines); advice != "" {
		said = append(said, "Cause: "+advice)
	}
	return said
}

// adviceOf looks through what was said since the instance started, the last line first.
func adviceOf(lines []Line) string {
	for _, l := range slices.Backward(lines) {
		if !strings.HasPrefix(l.Source, "APP") {
			continue
		}
		for _, p := range patterns {
			if m := p.line.FindStringSubmatchIndex(l.Text); m != nil {
				return string(p.line.ExpandString(nil, p.advice, l.Text, m))
			}
		}
	}
	return ""
}

// codeText is an exit code in words, as shells and kernels use them.
func codeText(code int) string {
	signals := map[int]string{1: "the terminal closed", 2: "interrupted", 4: "invalid instruction", 6: "it aborted itself", 7: "bus error", 8: "arithmetic error",
		9: "killed, often for memory", 11: "it accessed memory that is not its own", 13: "it wrote to a closed pipe", 15: "asked to end"}
	switch {
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
