package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// OnTerminal starts a command at a new terminal, of which it gives the
// other end.
func OnTerminal(t *testing.T, c *exec.Cmd) *os.File {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	number, nerr := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err := errors.Join(err, nerr); err != nil {
		t.Fatal(err)
	}
	theirs, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	c.Stdin, c.Stdout, c.Stderr = theirs, theirs, theirs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return ours
}
