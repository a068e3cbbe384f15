// Package stagelimits bounds what a staging may declare: processes, sidecars and
// metadata. The builder in the container refuses more, so that the staging log
// says why; the daemon refuses it again, for a buildpack can write what it likes.
//
// Cloud Controller bounds the lengths of names (255) and commands (4096) that
// users give, and no number. Each process has all sidecars of its type and each
// look at what is desired reads them, so that one machine needs a bound for both.
package stagelimits

import "fmt"

// What is accepted of one staging.
const (
	Processes         = 50       // of an app
	Sidecars          = 50       // of an app
	Name              = 255      // bytes of a process type or a sidecar's name
	Command           = 32 << 10 // bytes of a command that a buildpack declares
	ExecutionMetadata = 64 << 10 // bytes
	Buildpacks        = 50       // of a droplet
	Result            = 1 << 20  // bytes of a staging's result.json
)

// Process checks a process type and its command.
func Process(kind, command string) error {
	if err := size("process type", kind, Name); err != nil {
		return err
	}
	return size(fmt.Sprintf("command of process type %q", kind), command, Command)
}

// Sidecar checks a sidecar.
func Sidecar(name, command string, types []string) error {
	if err := size("sidecar name", name, Name); err != nil {
		return err
	}
	if err := size(fmt.Sprintf("command of sidecar %q", name), command, Command); err != nil {
		return err
	}
	if err := Count("process types of sidecar "+fmt.Sprintf("%q", name), len(types), Processes); err != nil {
		return err
	}
	for _, t := range types {
		if err := size("process type of sidecar "+fmt.Sprintf("%q", name), t, Name); err != nil {
			return err
		}
	}
	return nil
}

// Metadata checks execution metadata.
func Metadata(text string) error { return size("execution metadata", text, ExecutionMetadata) }

// Count checks a number of things.
func Count(what string, n, most int) error {
	if n > most {
		return fmt.Errorf("too many %s: %d; at most %d are accepted", what, n, most)
	}
	return nil
}

func size(what, text string, most int) error {
	if len(text) <= most {
		return nil
	}
	return fmt.Errorf("%s is too long: %d bytes; at most %d are accepted", what, len(text), most)
}
