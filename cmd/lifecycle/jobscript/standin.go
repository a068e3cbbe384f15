package jobscript

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"cupola/runtime/contract"
)

// standIn is a process that stands in for one of another container.
type standIn struct {
	cmd     *exec.Cmd
	pidfile string
	socket  *os.File // that it passes signals on to
	hold    *os.File // it ends when this is closed
}

type standIns []standIn

// begin runs init as a stand-in for each process that the socket brings, and writes its pidfile. It removes earlier pidfiles.
func begin(o contract.ScriptOptions, from *os.File, init string) (all standIns, err error) {
	if len(o.Peers) == 0 {
		return nil, nil
	}
	if err := os.RemoveAll(o.Pidfiles); err != nil {
		return nil, err
	}
	if err := os.Mkdir(o.Pidfiles, 0o755); err != nil { //nolint:gosec // the script may change its user
		return nil, err
	}
	sockets, err := receive(from)
	if err != nil {
		return nil, fmt.Errorf("receive the job's processes: %w", err)
	}
	for _, p := range o.Peers {
		socket := sockets[p.Name]
		if socket == nil { // it does not run
			continue
		}
		s, err := start(init, p, socket)
		if err != nil {
			return all, fmt.Errorf("stand in for process %s: %w", p.Name, err)
		}
		s.pidfile = filepath.Join(o.Pidfiles, p.Name+".pid")
		all = append(all, s)
		if err := os.WriteFile(s.pidfile, []byte(strconv.Itoa(s.cmd.Process.Pid)), 0o644); err != nil { //nolint:gosec // as the directory
			return all, err
		}
	}
	return all, nil
}

// start starts a stand-in with the name of the process, and returns when it passes signals on.
func start(init string, p contract.ScriptPeer, socket *os.File) (s standIn, err error) {
	ready, stdout, err := os.Pipe()
	if err != nil {
		return s, err
	}
	defer ready.Close()
	held, hold, err := os.Pipe()
	if err != nil {
		stdout.Close()
		return s, err
	}
	s = standIn{socket: socket, hold: hold}
	s.cmd = &exec.Cmd{Path: init, Args: []string{p.Executable, contract.InitStandIn, filepath.Base(p.Executable)}, Env: []string{}, Stdin: socket, Stdout: stdout, Stderr: held}
	err = s.cmd.Start()
	stdout.Close()
	held.Close()
	if err == nil {
		_, _ = ready.Read(make([]byte, 1)) // until it closes its end, or ends
	}
	return s, err
}

// ended handles the end of a child: SIGKILL, which no stand-in can catch, is passed on to its process here.
func (all standIns) ended(pid int, status syscall.WaitStatus) {
	at := slices.IndexFunc(all, func(s standIn) bool { return s.cmd.Process.Pid == pid })
	if at >= 0 && status.Signaled() && status.Signal() == syscall.SIGKILL {
		_, _ = all[at].socket.Write([]byte{byte(syscall.SIGKILL)}) // the process may have ended
	}
}

// remove tells the stand-ins to end, after they have passed on all signals until now, and removes their pidfiles.
func (all standIns) remove() {
	for _, s := range all {
		s.hold.Close()
		if err := os.Remove(s.pidfile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(os.Stderr, "script:", err)
		}
	}
}

// receive reads the packets of a socket: each is the name of a process, with the socket for its signals.
func receive(from *os.File) (map[string]*os.File, error) {
	c, err := net.FileConn(from)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("the standard input is not a socket")
	}
	all := map[string]*os.File{}
	for {
		name, rights := make([]byte, 1024), make([]byte, syscall.CmsgSpace(4))
		n, r, _, _, err := conn.ReadMsgUnix(name, rights)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		messages, err := syscall.ParseSocketControlMessage(rights[:r])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			fds, err := syscall.ParseUnixRights(&m)
			if err != nil {
				return nil, err
			}
			for _, fd := range fds {
				syscall.CloseOnExec(fd)
				all[string(name[:n])] = os.NewFile(uintptr(fd), "process")
			}
		}
	}
}
