package monit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"cupola/runtime/contract"
)

// pid returns the process that a pidfile names, and whether it is alive.
func pid(c contract.MonitCheck) (pid int, alive bool) {
	text, err := os.ReadFile(c.Pidfile)
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid < 1 {
		return 0, false
	}
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return 0, false
	}
	// The state of a process that ended, and was not reaped, is Z. Its name may have any characters.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if after := stat[bytes.LastIndexByte(stat, ')')+1:]; err == nil && bytes.HasPrefix(after, []byte(" Z")) {
		return 0, false
	}
	return pid, true
}

// runDir is where BOSH has pidfiles, empty after a start of the machine.
const runDir = "/var/vcap/sys/run"

// forget removes pidfiles when a container begins and ends: their numbers mean other processes in the next one.
func forget(checks []contract.MonitCheck) error {
	var errs []error
	for _, c := range checks {
		files := []string{c.Pidfile}
		if dir := filepath.Dir(c.Pidfile); strings.HasPrefix(dir, runDir+"/") {
			more, err := filepath.Glob(filepath.Join(dir, "*.pid"))
			files, errs = append(files, more...), append(errs, err)
		}
		for _, f := range files {
			if err := os.Remove(f); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// path is monit's search path for programs; it is all of their environment.
const path = "PATH=/bin:/usr/bin:/sbin:/usr/sbin"

// command prepares a program: it runs in its own session, without standard input.
func command(p contract.MonitProgram) (*exec.Cmd, error) {
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = []string{path}, "/", os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if p.User == "" && p.Group == "" {
		return cmd, nil
	}
	uid, gid, err := ids(p)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return cmd, err
}

// ids are the numbers of a program's user and group. A user alone has its own group.
func ids(p contract.MonitProgram) (uid, gid uint32, err error) {
	if p.User != "" {
		u, err := user.Lookup(p.User)
		if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
			u, err = user.LookupId(p.User)
		}
		if err != nil {
			return 0, 0, err
		}
		if uid, gid = number(u.Uid), number(u.Gid); p.Group == "" {
			return uid, gid, nil
		}
	}
	g, err := user.LookupGroup(p.Group)
	if _, unknown := errors.AsType[user.UnknownGroupError](err); unknown {
		g, err = user.LookupGroupId(p.Group)
	}
	if err != nil {
		return 0, 0, err
	}
	return uid, number(g.Gid), nil
}

func number(text string) uint32 {
	n, _ := strconv.ParseUint(text, 10, 32) // of /etc/passwd, where it is one
	return uint32(n)
}
