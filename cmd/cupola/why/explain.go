package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cupola/server/crash"
)

// lastLines is how many lines of an app's output are shown.
const lastLines = 10

// explain gives the cause first, then how to mend it, then what shows it.
func (f *facts) explain() []string {
	states := f.states()
	switch {
	case f.build != "":
		return f.staging()
	case f.bare:
		return []string{"The app has never been staged: nothing was pushed yet, or the API refused the push. Push it again: the push says why."}
	case f.state == "STOPPED":
		return []string{"The app is stopped: start it with cf start."}
	case len(f.waits) > 0:
		return append(f.waits, states)
	case !f.isDown():
		return append([]string{"All instances run. " + states}, f.lately()...)
	case f.crash == nil:
		return append([]string{"No instance has crashed yet. " + states}, output(f.linesOf("", "0"))...)
	}
	lines := f.crashLines()
	return append(append(f.crashed(lines), states), output(lines)...)
}

// crashed says how the last crash came.
func (f *facts) crashed(lines []crash.Line) []string {
	at := f.crash.CreatedAt.UTC().Format("15:04:05 MST")
	said := []string{fmt.Sprintf("Instance %d crashed at %s: %s", f.crash.Data.Index, at, f.crash.Data.Description)}
	return append(said, crash.Causes(f.crash.Data.Description, lines)...)
}

// recently is how long a crash is reported while all instances run.
const recently = time.Hour

// lately says how the last crash came of an app that runs again.
func (f *facts) lately() []string {
	if f.crash == nil || time.Since(f.crash.CreatedAt) > recently {
		return nil
	}
	return f.crashed(f.crashLines())
}

// staging says why the last staging failed.
func (f *facts) staging() []string {
	said := []string{"The last staging failed: " + f.build}
	if cause := crash.Build(f.build, f.linesOf("", "")); cause != "" {
		said = append(said, "Cause: "+strings.TrimSuffix(cause, ".")+".")
	}
	return append(said, "Its log: cf logs APP --recent")
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

// output is what an instance printed last.
func output(lines []crash.Line) []string {
	all := crash.Output(lines)
	if len(all) == 0 {
		return []string{"The app printed nothing."}
	}
	said := []string{"The last lines of its output (all: cf logs APP --recent):"}
	for _, l := range all[max(0, len(all)-lastLines):] {
		said = append(said, "  "+l)
	}
	return said
}
