package why

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/server/crash"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	crashed := func(description string, lines ...string) facts {
		f := facts{state: "STARTED", instances: map[string]int{"web CRASHED": 1}, crash: &Crash{}}
		f.crash.Data.Description = description
		for _, l := range lines {
			f.lines = append(f.lines, logLine{crash.Line{Source: "APP/PROC/WEB", Text: l}, "0"}, logLine{crash.Line{Source: "APP/PROC/WEB", Text: "of another instance"}, "1"})
		}
		return f
	}
	const exited = "APP/PROC/WEB: Exited with status "
	again := crashed(exited + "1")
	again.instances, again.crash.CreatedAt = map[string]int{"web RUNNING": 1}, time.Now()
	for name, c := range map[string]struct {
		facts
		want []string // lines, whole or their beginning, in this order
	}{
		"stopped":         {facts{state: "STOPPED"}, []string{"The app is stopped"}},
		"staging failed":  {facts{state: "STARTED", build: "NoAppDetectedError - x"}, []string{"The last staging failed: NoAppDetectedError - x"}},
		"no room":         {facts{state: "STARTED", instances: map[string]int{"web DOWN": 1}, waits: []string{"An instance of web cannot be placed: x"}}, []string{"An instance of web cannot be placed: x", "Instances: web DOWN: 1"}},
		"runs":            {facts{state: "STARTED", instances: map[string]int{"web RUNNING": 2}}, []string{"All instances run. Instances: web RUNNING: 2"}},
		"starts":          {facts{state: "STARTED", instances: map[string]int{"web STARTING": 1}}, []string{"No instance has crashed yet.", "The app printed nothing."}},
		"last run only":   {crashed(exited+"1", "first", crash.StartMessage, "second"), []string{"Instance 0 crashed at", "Exit status 1: ", "Instances: ", "The last lines of its output (all: cf logs APP --recent):", "  second"}},
		"listens":         {crashed("Instance never healthy after 1s: refused; the app listens on no port: it must"), []string{"Instance 0", "Cause: the app listens on no port: it must."}},
		"interpreter":     {crashed(exited+"126", "/bin/sh: ./run: /usr/bin/x: bad interpreter: No such file or directory"), []string{"Instance 0", "Exit status 126: the command was found", "Cause: The interpreter in a script's first line is missing in the app's stack: /usr/bin/x."}},
		"env":             {crashed(exited+"127", "/usr/bin/env: ‘python’: No such file or directory"), []string{"Instance 0", "Exit status 127", "Cause: The program python, or the interpreter it names, is missing"}},
		"killed":          {crashed(exited+"137 (out of memory)", "The app ran out of memory: its limit is 32M; give it more"), []string{"Instance 0", "Exit status 137: signal 9: killed", "Cause: The app ran out of memory: its limit is 32M; give it more."}},
		"segfault":        {crashed(exited + "139"), []string{"Instance 0", "Exit status 139: signal 11: it accessed memory that is not its own: build its native modules"}},
		"ended well":      {crashed(""), []string{"Instance 0", "The app ended without an error: its process must go on running."}},
		"disk":            {crashed(exited+"1", "write: No space left on device"), []string{"Instance 0", "Exit status 1", "Cause: The app used up its disk quota"}},
		"port":            {crashed(exited+"1", "listen: address already in use"), []string{"Instance 0", "Exit status 1", "Cause: Another process of the app has the port: start one server only, on the port in $PORT."}},
		"not executable":  {crashed(exited+"126", "bash: line 1: ./run: Permission denied"), []string{"Instance 0", "Exit status 126", "Cause: A file may not be executed: chmod +x ./run"}},
		"unknown program": {crashed(exited+"127", "bash: line 1: x: command not found"), []string{"Instance 0", "Exit status 127", "Cause: The command x is missing"}},
		"ran out lately":  {again, []string{"All instances run. Instances: web RUNNING: 1", "Instance 0 crashed at", "Exit status 1"}},
	} {
		got := c.explain()
		for _, want := range c.want {
			at := slices.IndexFunc(got, func(l string) bool { return strings.HasPrefix(l, want) })
			if at < 0 {
				t.Errorf("%s: no line %q after the ones before it in %q", name, want, c.explain())
				break
			}
			got = got[at+1:]
		}
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	for details, want := range map[string]string{
		"":                               "",
		"insufficient resources: memory": "An instance of web cannot be placed: insufficient resources: memory\nTo mend it: no cell has that much",
		"Waiting: Unschedulable: 0/2 nodes are available: 2 Insufficient memory": "An instance of web waits: Unschedulable: 0/2 nodes are available: 2 Insufficient memory\nTo mend it: no node of the cluster has that much left",
	} {
		if got := strings.Join(waiting("web", details), "\n"); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: got %q; want %q", details, got, want)
		}
	}
}

// Instances of a web and of a worker process have the same indexes.
func TestLinesOfACrash(t *testing.T) {
	t.Parallel()
	var lines []logLine
	for _, source := range []string{"APP/PROC/WEB", "APP/PROC/WORKER", "APP/PROC/WORKER/SIDECAR/PROXY", "APP/PROC/WORKERS", "CELL", "STG/0"} {
		lines = append(lines, logLine{crash.Line{Source: source, Text: source}, "0"}, logLine{crash.Line{Source: source, Text: source + " of 1"}, "1"})
	}
	for description, want := range map[string][]string{
		"APP/PROC/WORKER: Exited with status 1":               {"APP/PROC/WORKER", "APP/PROC/WORKER/SIDECAR/PROXY", "CELL", "STG/0", "STG/0 of 1"},
		"APP/PROC/WORKER/SIDECAR/PROXY: Exited with status 1": {"APP/PROC/WORKER/SIDECAR/PROXY", "CELL", "STG/0", "STG/0 of 1"},
		"Instance never healthy after 1s: refused":            {"APP/PROC/WEB", "APP/PROC/WORKER", "APP/PROC/WORKER/SIDECAR/PROXY", "APP/PROC/WORKERS", "CELL", "STG/0", "STG/0 of 1"},
	} {
		f := facts{crash: &Crash{}, lines: lines}
		f.crash.Data.Description = description
		var got []string
		for _, l := range f.crashLines() {
			got = append(got, l.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q; want %q", description, got, want)
		}
	}
}
