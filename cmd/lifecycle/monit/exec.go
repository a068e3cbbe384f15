package monit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// socketName is the socket in the job's directory at which the supervisor runs scripts. They see the job's processes there, as on a BOSH
// virtual machine; in the container that each script has for itself they would not. Only root may connect.
const socketName = ".monit.sock"

// request is a script to run. The client's standard output and error come with it.
type request struct {
	Args []string
	Env  []string
	// Unmonitor leaves the processes as they are from then on: they may end by the script.
	Unmonitor bool `json:",omitempty"`
}

// execute runs a script next to the job's processes, or here if there are none, and returns its exit code.
func execute(dir string, r request) (code int, err error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(dir, socketName)})
	if err != nil {
		return 1, &fs.PathError{Op: "exec", Path: r.Args[0], Err: syscall.Exec(r.Args[0], r.Args, r.Env)}
	}
	defer conn.Close()
	if _, _, err := conn.WriteMsgUnix([]byte{0}, syscall.UnixRights(int(os.Stdout.Fd()), int(os.Stderr.Fd())), nil); err != nil {
		return 1, err
	}
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return 1, err
	}
	if err := json.NewDecoder(conn).Decode(&code); err != nil {
		return 1, fmt.Errorf("the container of the job's processes ended before %s: %w", r.Args[0], err)
	}
	return code, nil
}

// serve runs scripts of clients until ctx ends.
func (s *supervisor) serve(ctx context.Context, dir string) error {
	at := filepath.Join(dir, socketName)
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at})
	if err != nil {
		return err
	}
	if err := os.Chmod(at, 0o600); err != nil {
		return errors.Join(err, l.Close())
	}
	context.AfterFunc(ctx, func() { _ = l.Close() }) // which removes the socket
	go func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			go s.client(conn)
		}
	}()
	return nil
}

// client runs a script, and ends it if the client goes away.
func (s *supervisor) client(conn *net.UnixConn) {
	defer conn.Close()
	r, files, err := receive(conn)
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	var cmd *exec.Cmd
	if err == nil {
		if r.Unmonitor {
			s.unmonitored.Store(true)
		}
		cmd = r.command(files)
		err = cmd.Start()
	}
	if err != nil {
		s.say("a script did not start: %v", err)
		return
	}
	ended := make(chan struct{})
	go func() {
		_, _ = conn.Read(make([]byte, 1)) // the client says no more: it is gone, or has its answer
		if running(ended) {
			end(cmd.Process.Pid, ended)
		}
	}()
	_ = cmd.Wait() // its code tells
	close(ended)
	code := cmd.ProcessState.ExitCode()
	if code < 0 { // by a signal, as a shell says it
		code = 128
	}
	_ = json.NewEncoder(conn).Encode(code)
}

func (r request) command(output []*os.File) *exec.Cmd {
	cmd := exec.Command(r.Args[0], r.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = r.Env, "/", output[0], output[1]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// receive reads a request, which comes with two files.
func receive(conn *net.UnixConn) (r request, files []*os.File, err error) {
	first, rights := make([]byte, 1), make([]byte, syscall.CmsgSpace(2*4))
	_, n, _, _, err := conn.ReadMsgUnix(first, rights)
	if err != nil {
		return r, nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return r, nil, err
	}
	for _, m := range messages {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			return r, files, err
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "output"))
		}
	}
	err = json.NewDecoder(conn).Decode(&r)
	if err == nil && (len(files) != 2 || len(r.Args) == 0) {
		err = errors.New("want a program, its output and its error")
	}
	return r, files, err
}

// end ends a session: SIGTERM, and SIGKILL after ten seconds.
func end(pid int, ended <-chan struct{}) {
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), cycle)
	defer cancel()
	if !until(ctx, func() bool { return !running(ended) }) {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}
