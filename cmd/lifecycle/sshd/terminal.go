package sshd

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal.
type terminal struct {
	master *os.File
	slave  *os.File // nil once the program has it
}

// requestTerminal answers pty-req (RFC 4254, 6.2).
func (n *session) requestTerminal(payload []byte) bool {
	var want struct {
		Term                       string
		Columns, Rows, Width, High uint32
		Modes                      string
	}
	if ssh.Unmarshal(payload, &want) != nil || n.tty != nil || n.busy {
		return false
	}
	tty, err := openTerminal()
	if err != nil {
		return false
	}
	n.tty = tty
	tty.setSize(want.Columns, want.Rows)
	tty.setModes([]byte(want.Modes))
	n.env = append(n.env[:len(n.env):len(n.env)], "TERM="+want.Term)
	return true
}

func (n *session) resize(payload []byte) bool {
	var want struct{ Columns, Rows, Width, High uint32 }
	if ssh.Unmarshal(payload, &want) != nil || n.tty == nil {
		return false
	}
	n.tty.setSize(want.Columns, want.Rows)
	return true
}

func openTerminal() (*terminal, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/ptmx: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("unlock the terminal: %w", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("number the terminal: %w", err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &terminal{master: os.NewFile(uintptr(fd), "/dev/ptmx"), slave: slave}, nil
}

// run starts cmd with the terminal as its own; wait waits for its end and for
// the last of its output.
func (t *terminal) run(cmd *exec.Cmd, kin *kin, channel io.ReadWriter) (wait func() error, err error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.slave, t.slave, t.slave
	cmd.SysProcAttr.Setctty = true
	if err := kin.start(cmd); err != nil {
		return nil, err
	}
	_ = t.slave.Close()
	t.slave = nil
	go func() {
		if _, err := io.Copy(t.master, channel); err == nil {
			_, _ = t.master.Write([]byte{eof})
		}
	}()
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		// When the program ends the kernel hangs up on all other processes that have the
		// terminal, so that this ends as well.
		_, _ = io.Copy(channel, t.master)
	}()
	return func() error {
		err := kin.wait(cmd)
		<-shown
		return err
	}, nil
}

// eof is what is typed to end the input.
const eof = 4

func (t *terminal) close() {
	_ = t.master.Close()
	if t.slave != nil {
		_ = t.slave.Close()
	}
}

// control calls f with the terminal's descriptor.
func (t *terminal) control(f func(fd int) error) error {
	conn, err := t.master.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// setSize tells the terminal its size, and the kernel tells the program.
func (t *terminal) setSize(columns, rows uint32) {
	size := &unix.Winsize{Col: uint16(min(columns, 1<<16-1)), Row: uint16(min(rows, 1<<16-1))}
	_ = t.control(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
}

// setModes sets the modes that the client's own terminal has.
func (t *terminal) setModes(encoded []byte) {
	_ = t.control(func(fd int) error {
		settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		applyModes(settings, encoded)
		return unix.IoctlSetTermios(fd, unix.TCSETS, settings)
	})
}
