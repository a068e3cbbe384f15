package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/server/crash"
)

// lastLines is how many lines of an app's output are shown.
const lastLines = 10

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
	said = append(said, crash.Causes(f.crash.Data.Description, f.lines)...)
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
	lines := crash.Output(f.lines)
	if len(lines) == 0 {
		return []string{"The app printed nothing."}
	}
	said := []string{"The last lines of its output:"}
	for _, l := range lines[max(0, len(lines)-lastLines):] {
		said = append(said, "  "+l)
	}
	return said
}
