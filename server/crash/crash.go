// Package crash says in words why an instance crashed, from the description of its
// exit and what its app printed.
package crash

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// StartMessage is what the launcher prints before it starts an app.
const StartMessage = "Invoking start command."

// Line is a line of an app's log.
type Line struct {
	Source string // "APP/PROC/WEB"
	Text   string
}

// Output is what an app itself has printed since its last start.
func Output(lines []Line) (output []string) {
	for _, l := range lines {
		switch {
		case !strings.HasPrefix(l.Source, "APP"):
		case l.Text == StartMessage:
			output = nil
		default:
			output = append(output, l.Text)
		}
	}
	return output
}

// Brief is one line for tables: how the instance ended, and the cause or else what
// the app printed last.
func Brief(description string, lines []Line) string {
	if description == "" {
		return ""
	}
	if _, hint, found := strings.Cut(description, listens); found {
		return "The health check failed: the app listens on " + hint
	}
	if _, failure, found := strings.Cut(description, "check to succeed: "); found {
		return "The health check failed: " + failure
	}
	_, ended, found := strings.Cut(description, ": ") // what ended: "APP/PROC/WEB"
	if !found || !strings.HasPrefix(description, "APP/") {
		ended = description
	}
	if cause := adviceOf(lines); cause != "" {
		return ended + ". " + strings.TrimSuffix(cause, ".")
	}
	if text := lastWords(Output(lines)); text != "" {
		return ended + ". Its last output: " + text
	}
	return ended
}

// errorLine is how languages begin the line that names an error. Others may follow
// it: where it happened, or the version of the language.
var errorLine = regexp.MustCompile(`^\s*(?:Caused by: |Exception in thread |panic: |fatal error: |\S*(?:Error|Exception): |.*\(\S+Error\)$)`)

// lastWords is the last line of an output that names an error, or else the last one.
func lastWords(output []string) (last string) {
	for _, text := range slices.Backward(output) {
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "Exit status ") {
			continue
		}
		if errorLine.MatchString(text) {
			return text
		}
		last = cmp.Or(last, text)
	}
	return last
}

// listens is what the cell adds to the description of a health check that failed.
const listens = "; the app listens on "

// patterns find the cause in the app's last output; the advice may use what matched.
var patterns = []struct {
	line   *regexp.Regexp
	advice string
}{
	{regexp.MustCompile(`(?i)exec format error`), "A program is built for another processor or system: build it for Linux on this machine's processor (uname -m)."},
	{regexp.MustCompile(`(\S+): bad interpreter`), "The interpreter in a script's first line is missing in the app's stack: $1. Push with a stack or buildpack that has it."},
	{regexp.MustCompile(`(?:env: |exec: )[‘'"]?([^\s‘’'":]+)[’'"]?:? .*(?:No such file or directory|not found|cannot execute: required file not found)`), "The program $1, or the interpreter it names, is missing in the app's stack: push with a stack or buildpack that has it."},
	{regexp.MustCompile(`(\S+): cannot execute: required file not found`), "The interpreter that the first line of $1 names, or the loader of the program, is missing in the app's stack: push with a stack or buildpack that has it, or link the program statically. In a script, lines that end in CR LF look the same: convert it with dos2unix."},
	{regexp.MustCompile(`(\S+): (?:command )?not found`), "The command $1 is missing in the app's stack, or not in its PATH: check the start command and the buildpack."},
	{regexp.MustCompile(`(\S+): No such file or directory`), "A file is missing: $1. Check the start command, .cfignore, and the app's stack."},
	{regexp.MustCompile(`(\S+): Permission denied`), "A file may not be executed: chmod +x $1, then push again."},
	{regexp.MustCompile(`(?i)no space left on device|disk quota exceeded`), "The app used up its disk quota: give it more with cf scale -k."},
	{regexp.MustCompile(`(?i)address already in use`), "Another process of the app has the port: start one server only, on the port in $$PORT."},
	{regexp.MustCompile(`The app ran out of memory: .*`), "$0."},
}

var status = regexp.MustCompile(`status (\d+)`)

// Causes says in words what a crash means, a sentence each: what the exit status
// stands for, and the cause where the description or the log tells it.
func Causes(description string, lines []Line) (said []string) {
	if _, hint, found := strings.Cut(description, listens); found {
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
