package volume

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"cupola/rootfs/disk"
	"cupola/runtime/fault"
)

// A frozen file system stays so when the process that froze it is gone, and who
// writes to it cannot even be killed. So the process that freezes is another
// than the one that copies: it thaws on request, when the pipe for requests ends,
// as it does with the daemon, and when the time is over.
// The daemon thaws if that process was killed, and at its start all volumes, if
// both were.

// What a holder says once writers are blocked, and the request to thaw once all has
// been copied.
const (
	held    = "held\n"
	release = 'r'
)

// Hold is the holder: it freezes the volume in dir and thaws it when in gives a
// byte or ends, or after within. It is an error if the request did not come in time.
func Hold(dir string, within time.Duration, in io.Reader, out io.Writer) (err error) {
	// A terminal's signals go to it, too, and it must not die when its reader is gone.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	released := make(chan error, 1)
	fault.Go("volume", func() {
		_, err := io.ReadFull(in, make([]byte, 1))
		released <- err
	})
	if err := disk.Freeze(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Thaw(dir)) }()
	if _, err := io.WriteString(out, held); err != nil {
		return err
	}
	select {
	case err := <-released:
		return err
	case <-time.After(within):
		return fmt.Errorf("it was held for %s, and not let go", within)
	}
}

// hold has a holder freeze a volume. release thaws it, and reports whether it was
// frozen until then.
func (s *Store) hold(ctx context.Context, dir string, within time.Duration) (letGo func() error, err error) {
	cmd := exec.CommandContext(ctx, s.cfg.Holder[0], append(s.cfg.Holder[1:len(s.cfg.Holder):len(s.cfg.Holder)], dir, within.String())...)
	cmd.Cancel = func() error { return nil } // the end of its input is enough
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said := &tail{}
	cmd.Stderr = fault.Writer("volume", said)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := func() error {
		_ = in.Close() // it may have ended
		err := cmd.Wait()
		if err == nil {
			return nil
		}
		return errors.Join(fmt.Errorf("the volume was not held: %w: %s", err, said.text), disk.Thaw(dir))
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != held {
		return nil, errors.Join(err, end())
	}
	return func() error {
		_, err := in.Write([]byte{release})
		return errors.Join(end(), ignoreEnded(err))
	}, nil
}

// ignoreEnded leaves it to the exit code that a holder has ended before.
func ignoreEnded(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// tail keeps some of what a process says.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-1000):]
	return len(p), nil
}
