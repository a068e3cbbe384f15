// Package crash says in words why an app does not run: why an instance crashed, from the description of its
// exit and what its app printed; why a staging failed, from its log; and how to mend what the API refuses.
package crash

import (
	"cmp"
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/runtime/pattern"
)

// StartMessage is what the launcher prints before it starts an app, and preStartMessage what it prints before the app's scripts.
const (
	StartMessage    = "Invoking start command."
	preStartMessage = "Invoking pre-start scripts."
)

// exitLine is how the cell begins its line about the end of a process.
const exitLine = "Exit status "

// Line is a line of an app's log.
type Line struct {
	Source string // "APP/PROC/WEB"
	Text   string
}

func (l Line) isOfSidecar() bool { return strings.Contains(l.Source, "/SIDECAR/") }

// linesOf are the lines of the sidecar whose end a description of a crash is of; all lines where
// a process ended, since its sidecars may say why.
func linesOf(description string, lines []Line) []Line {
	source, name := sidecarOf(description)
	if name == "" {
		return lines
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Source != source })
}

// sidecarOf is the sidecar whose end a description is of: "APP/PROC/WEB/SIDECAR/S", "S"; its name is
// "" for a process.
func sidecarOf(description string) (source, name string) {
	source, _, _ = strings.Cut(description, ": ")
	_, name, _ = strings.Cut(source, "/SIDECAR/")
	return source, name
}

// run is the part of a log that is of the last run that has ended, with what the cell said of its end: a log may go on with the next run.
// Standard output and standard error are read apart, so that only the end of a run is a sure bound. Where none has ended, it is
// what was said since the start.
func run(lines []Line) []Line {
	lines = slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return !strings.HasPrefix(l.Source, "APP") })
	alone := !slices.ContainsFunc(lines, func(l Line) bool { return !l.isOfSidecar() })
	from, to := 0, 0
	for at, l := range lines {
		switch {
		case strings.HasPrefix(l.Text, exitLine) && (alone || !l.isOfSidecar()):
			if to > 0 {
				from = to
			}
			to = at + 1
		case to == at && to > 0 && isOfCell(l.Text):
			to = at + 1
		}
	}
	if to > 0 {
		return lines[from:to]
	}
	for at, l := range slices.Backward(lines) {
		if l.Text == StartMessage {
			return lines[at+1:]
		}
	}
	return lines
}

// isOfCell reports whether the cell, and not the app, said so of the app's end.
func isOfCell(text string) bool {
	return strings.HasPrefix(text, lrp.CausePrefix) || strings.HasPrefix(text, outOfMemory)
}

// Output is what an app itself printed in its last run that has ended, or else since its start.
func Output(lines []Line) (output []string) {
	for _, l := range run(lines) {
		if !strings.HasPrefix(l.Text, exitLine) && !isOfCell(l.Text) && l.Text != StartMessage && l.Text != preStartMessage {
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
	if cause := healthCause(description); cause != "" {
		return "The health check failed: " + cause
	}
	if cause := createCause(description); cause != "" {
		return "The container was not created: " + cause
	}
	if _, failure, found := strings.Cut(description, "check to succeed: "); found {
		return "The health check failed: " + failure
	}
	lines = linesOf(description, lines)
	_, ended, found := strings.Cut(description, ": ") // what ended: "APP/PROC/WEB"
	switch {
	case isGoodEnd(description):
		ended = goodEnd
	case !found || !strings.HasPrefix(description, "APP/"):
		ended = description
	}
	if _, sidecar := sidecarOf(description); sidecar != "" {
		ended = "Sidecar " + sidecar + ": " + ended
	}
	if cause := adviceOf(lines); cause != "" {
		return ended + ". " + strings.TrimSuffix(cause, ".")
	}
	if m := status().FindStringSubmatch(ended); m != nil {
		ended += signalText(m[1])
	}
	if text := lastWords(Output(lines)); text != "" {
		return ended + ". Its last output: " + text
	}
	return ended
}

// errorLine is how languages begin the line that names an error. Others may follow
// it: where it happened, or the version of the language.
var errorLine = pattern.Lazy(`^\s*(?:Caused by: |Exception in thread |panic: |fatal error: |\S*(?:Error|Exception): |.*\(\S+Error\)$)`)

// lastWords is the last line of an output that names an error, or else the last one.
func lastWords(output []string) (last string) {
	for _, text := range slices.Backward(output) {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		if errorLine().MatchString(text) {
			return text
		}
		last = cmp.Or(last, text)
	}
	return last
}

// Causes says in words what a crash means, a sentence each: what the exit status
// stands for, and the cause where the description or the log tells it.
func Causes(description string, lines []Line) (said []string) {
	if cause := cmp.Or(healthCause(description), createCause(description)); cause != "" {
		return []string{"Cause: " + cause + "."}
	}
	lines = linesOf(description, lines)
	if m := status().FindStringSubmatch(description); m != nil {
		said = append(said, "Exit status "+m[1]+": "+codeText(m[1], strings.Contains(description, "(out of memory)"))+".")
	} else if description == "" || isGoodEnd(description) {
		said = append(said, goodEnd+". "+goodEndMend+".")
	}
	if advice := adviceOf(lines); advice != "" {
		said = append(said, "Cause: "+strings.TrimSuffix(advice, ".")+".")
	} else if text := lastWords(Output(lines)); text != "" {
		said = append(said, "Its last output: "+text)
	}
	return said
}

// adviceOf looks through what was said in the run that ended, the last line first.
func adviceOf(lines []Line) string {
	for _, l := range slices.Backward(run(lines)) {
		for _, p := range patterns {
			if m := p.line().FindStringSubmatchIndex(l.Text); m != nil {
				return string(p.line().ExpandString(nil, p.advice, l.Text, m))
			}
		}
	}
	return ""
}
