package support

import (
	"fmt"
	"strings"
)

// about says what the files of a bundle are.
var about = map[string]string{
	"version.json":     "version of cupola, of Go and of the modules in it",
	"config.json":      "flags that the daemon was started with; of those that may hold a secret only that they are set",
	"status.json":      "the machine and the daemon: load, memory, disk, pressure, sizes of the database",
	"log.jsonl":        "the last 1000 lines of the daemon's log, URLs without credentials, paths and queries",
	"journal.txt":      "the last 1000 lines of the service's log, URLs without credentials, paths and queries",
	"process.txt":      "what the kernel says of the daemon's process",
	"goroutines.txt":   "what the daemon's goroutines do (names of functions, no data)",
	"heap.pprof":       "which functions hold memory, for 'go tool pprof' (no data)",
	"doctor.json":      "results of 'cupola doctor'",
	"rows.json":        "number of rows of each table of the database",
	"disk.json":        "what takes room in the data directory, as 'cupola disk' shows it",
	"alerts.json":      "rules of alerts that fire or have fired, and when; not what they are about",
	"kernel.txt":       "facts about the kernel, cgroups and file system",
	"errors.txt":       "what could not be collected",
	"daemon-error.txt": "why the daemon, or its data directory, gave nothing",
}

// Text is a file of a text that is not the daemon's answer, without credentials.
func Text(name string, text []byte) File { return File{name, scrub(text)} }

// WithReadme puts a file before the others that says what they are.
func WithReadme(files []File, version string) []File {
	var b strings.Builder
	fmt.Fprintf(&b, `This is a support bundle of cupola %s. It helps to find out why a daemon does not work.

It has no environment variables of apps, no service bindings, no credentials, tokens, passwords or
keys, and no lines that apps or routes logged. Look through it before you pass it on: it does name the
version, flags, addresses and directories of this machine.

`, version)
	for _, f := range files {
		fmt.Fprintf(&b, "%-18s %s\n", f.Name, about[f.Name])
	}
	return append([]File{{"README.txt", []byte(b.String())}}, files...)
}
