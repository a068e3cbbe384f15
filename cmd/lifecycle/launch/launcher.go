// Package launch starts the process of a buildpack app inside its
// container, as Cloud Foundry's launcher does: it completes the environment,
// runs the profile scripts and becomes the start command.
package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"cupola/runtime/contract"
)

// PreStartMessage and StartMessage are the lines that Cloud Foundry's launcher
// prints.
const (
	PreStartMessage = "Invoking pre-start scripts."
	StartMessage    = "Invoking start command."
)

// Exit codes, Cloud Foundry's.
const (
	exitUsage = 1
	exitEnv   = 3
	exitStart = 4
)

const bash = "/bin/bash"

// errNeedFull says that the small program cannot do it: the droplet's
// staging_info.yml is YAML and not JSON, or the container has no bash.
var errNeedFull = errors.New("the lifecycle program is needed")

// Start is a start command with all that it needs.
type Start struct {
	Dir     string // the app's directory, absolute
	Command string
	// EntrypointPrefix replaces `bash -c` before Command; a buildpack may
	// set it in config.yml. Empty is none.
	EntrypointPrefix string
	Env              []string
}

// Full is what the launcher needs for the cases that the small program, which
// has neither a YAML parser nor a shell, leaves to the large one.
type Full struct {
	// Decode reads a staging_info.yml.
	Decode func([]byte) (StagingInfo, error)
	// Interpret runs the profile scripts and the command of s without bash
	// and returns the exit code, if it returns.
	Interpret func(s Start) int
}

// Main is the launcher: argv is its name, the app's directory, the start
// command (empty takes the droplet's) and the execution metadata (not used
// for buildpack apps). It returns, with an exit code, only when the command
// could not be started.
func Main(argv []string) int {
	if isCNB() {
		return delegate(argv, contract.CommandCNBLauncher)
	}
	s, code, err := prepare(argv, decodeJSON)
	if err == nil && !exists(bash) {
		err = errNeedFull
	}
	if errors.Is(err, errNeedFull) {
		return delegate(argv, "launcher")
	}
	if err != nil {
		return fail(argv[0], code, err)
	}
	return s.runBash(argv[0])
}

// Main is the launcher in the large program.
func (f Full) Main(argv []string) int {
	s, code, err := prepare(argv, f.Decode)
	if err != nil {
		return fail(argv[0], code, err)
	}
	if exists(bash) {
		return s.runBash(argv[0])
	}
	return f.Interpret(s)
}

// prepare turns the command line and the droplet's staging information into a
// Start; the code belongs to the error.
func prepare(argv []string, decode func([]byte) (StagingInfo, error)) (Start, int, error) {
	if len(argv) < 4 {
		return Start{}, exitUsage, fmt.Errorf("received only %d arguments\nUsage: %s <app-directory> <start-command> <metadata>", len(argv)-1, argv[0])
	}
	dir, err := filepath.Abs(argv[1])
	if err != nil {
		return Start{}, exitUsage, err
	}
	info, err := readStagingInfo(decode)
	if err != nil {
		return Start{}, exitUsage, err
	}
	s := Start{Dir: dir, Command: argv[2], EntrypointPrefix: info.Config.EntrypointPrefix}
	if s.Command == "" {
		s.Command = info.StartCommand
	}
	if s.Command == "" {
		return s, exitUsage, errors.New("no start command specified or detected in droplet")
	}
	s.Env, err = environment(dir, os.Environ())
	return s, exitEnv, err
}

// isCNB reports whether the droplet is one of Cloud Native Buildpacks.
func isCNB() bool {
	return exists(filepath.Join(cmp.Or(os.Getenv(contract.EnvCNBLayers), contract.CNBLayers), "config", "metadata.toml"))
}

// delegate executes the same command line, as a command, in the large program, which
// lies next to this one. Where that is argv says: the link to the running program is
// the host's in a process that joined the container.
func delegate(argv []string, command string) int {
	full := filepath.Join(filepath.Dir(argv[0]), "lifecycle")
	err := syscall.Exec(full, append([]string{command}, argv[1:]...), os.Environ())
	return fail(argv[0], exitStart, fmt.Errorf("exec %s: %w", full, err))
}

func fail(name string, code int, err error) int {
	_, _ = os.Stderr.WriteString(name + ": " + err.Error() + "\n")
	return code
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
