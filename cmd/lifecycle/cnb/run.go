package cnb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// script is one of a buildpack's programs, with its arguments.
type script struct {
	buildpack *descriptor
	name      string // detect or build
	args      []string
	env       []string
}

// run executes a script in the app's directory. The environment has what the
// specification adds for the buildpack's API.
func (s *staging) run(x script, output io.Writer) error {
	d := x.buildpack
	cmd := exec.Command(filepath.Join(d.dir, "bin", x.name), x.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.workspace, output, output
	env := s.env
	if !d.Buildpack.ClearEnv {
		var err error
		if env, err = s.env.withPlatform(s.platform); err != nil {
			return err
		}
	}
	cmd.Env = append(env.list(), "CNB_BUILDPACK_DIR="+d.dir)
	if d.atLeast("0.8") {
		cmd.Env = append(append(cmd.Env, "CNB_PLATFORM_DIR="+s.platform), x.env...)
	}
	if d.atLeast("0.10") {
		cmd.Env = append(cmd.Env, s.target.env()...)
	}
	return cmd.Run()
}

// exitStatus is how a script ended: its exit status, or -1 if it did not exit by itself or
// did not start.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

// writePlatform makes the platform directory: the user's variables as files.
func writePlatform(dir string, names []string) error {
	env := filepath.Join(dir, "env")
	if err := os.MkdirAll(env, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		value, ok := os.LookupEnv(name)
		if !ok {
			return fmt.Errorf("requested environment variable %q not found", name)
		}
		if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
			continue // no file can be called so
		}
		if err := os.WriteFile(filepath.Join(env, name), []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readLimited reads all of a file, but no more than so many bytes.
func readLimited(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return text, err
}
