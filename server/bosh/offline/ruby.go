package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"cupola/server/bosh/erb"
)

// Bounds of Ruby.
const (
	maxTime   = 2 * time.Minute
	maxOutput = 256 << 20
)

// Ruby is this machine's: from PATH, or in a container of docker or podman from an
// image. Nil: there is none, and templates have to be simple.
func Ruby(image string) erb.Ruby {
	if path, err := exec.LookPath("ruby"); err == nil {
		return run(path, "-e")
	}
	if path := engine(); path != "" {
		return run(path, append(append([]string{"run", "--rm", "--interactive", "--read-only", "--user=65534:65534"}, bounds...), image, "ruby", "-e")...)
	}
	return nil
}

// run runs a program as the last argument of a command.
func run(name string, args ...string) erb.Ruby {
	return func(ctx context.Context, program, input []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, maxTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, append(args, string(program))...)
		cmd.Dir = os.TempDir()
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8"}
		cmd.Stdin = bytes.NewReader(input)
		var said tail
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(out, maxOutput+1))
		if len(text) > maxOutput {
			cancel()
			return text, errors.Join(erb.Ended(fmt.Sprintf("wrote more than %d MB", maxOutput>>20)), ignored(cmd.Wait()))
		}
		if ended := cmd.Wait(); ended != nil {
			return text, erb.Ended(fmt.Sprintf("ruby: %s: %s", ended, said.last()))
		}
		return text, err
	}
}

// ignored drops the error of a program that was killed on purpose.
func ignored(error) error { return nil }

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	const keep = 4096
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-keep):]
	return len(p), nil
}

func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(t.text), "?")), "\n")
	return lines[len(lines)-1]
}
