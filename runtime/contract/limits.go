package contract

import "fmt"

// The limits of what a staging may declare. The builder in the container refuses
// more, so that the staging log says why; the daemon refuses it again, because a
// buildpack can write what it likes.
//
// Cloud Controller limits the lengths of names (255) and commands (4096) that
// users give, and no number. Each process has all sidecars of its type and every
// plan reads them, so one machine needs a limit for both.
const (
	MaxProcesses         = 50       // of an app
	MaxSidecars          = 50       // of an app
	maxName              = 255      // bytes of a process type or a sidecar's name
	MaxCommand           = 32 << 10 // bytes of a command that a buildpack declares
	maxExecutionMetadata = 64 << 10 // bytes
	MaxBuildpacks        = 50       // of a droplet
	MaxResult            = 1 << 20  // bytes of StagingResult
)

// CheckProcess checks a process type and its command.
func CheckProcess(kind, command string) error {
	if err := size("process type", kind, maxName); err != nil {
		return err
	}
	return size(fmt.Sprintf("command of process type %q", kind), command, MaxCommand)
}

// CheckSidecar checks a sidecar.
func CheckSidecar(name, command string, types []string) error {
	if err := size("sidecar name", name, maxName); err != nil {
		return err
	}
	if err := size(fmt.Sprintf("command of sidecar %q", name), command, MaxCommand); err != nil {
		return err
	}
	if err := CheckCount("process types of sidecar "+fmt.Sprintf("%q", name), len(types), MaxProcesses); err != nil {
		return err
	}
	for _, t := range types {
		if err := size("process type of sidecar "+fmt.Sprintf("%q", name), t, maxName); err != nil {
			return err
		}
	}
	return nil
}

// CheckMetadata checks execution metadata.
func CheckMetadata(text string) error { return size("execution metadata", text, maxExecutionMetadata) }

// CheckCount checks a number of things.
func CheckCount(what string, n, most int) error {
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
