package alerts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"cupola/store/cf"
)

// runCommand runs a target's command with the message in JSON as its input.
func runCommand(ctx context.Context, s cf.AlertSettings, m message) (taken int, err error) {
	body, taken, err := m.body(FormJSON)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", s.Command) //nolint:gosec // the operator's own, from the configuration
	said := &tail{}
	cmd.Stdin, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(body), said, time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "CUPOLA_ALERT_SUBJECT=" + m.subject(), "CUPOLA_DOMAIN=" + m.domain}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("the command failed: %w: %s", err, clean(string(said.last), maxText))
	}
	return taken, nil
}

// tail keeps the last bytes of an output.
type tail struct{ last []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-maxText):]
	return len(p), nil
}
