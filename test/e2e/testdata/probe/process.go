package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// die sends signal=NUMBER to this process.
func die(w http.ResponseWriter, r *http.Request) {
	signal, _ := strconv.Atoi(r.FormValue("signal"))
	fmt.Fprintln(w, syscall.Kill(os.Getpid(), syscall.Signal(signal)))
}

// orphans leaves count=NUMBER processes behind whose parent ended first.
func orphans(w http.ResponseWriter, r *http.Request) {
	count, _ := strconv.Atoi(r.FormValue("count"))
	for n := range count {
		if err := orphan(); err != nil {
			fmt.Fprintf(w, "after %d orphans: %v\n", n, err)
			return
		}
	}
	fmt.Fprintln(w, count, "orphans")
}

// orphan starts a process that starts another one, and ends. Neither runs
// anything of Go but these calls.
func orphan() error {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && errno == 0 {
		_, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
	if errno != 0 {
		return errno
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(int(pid), &status, 0, nil); err != nil {
		return err
	}
	if status.ExitStatus() != 0 {
		return syscall.Errno(status.ExitStatus())
	}
	return nil
}

// zombies counts processes without a waiting parent.
func zombies(w http.ResponseWriter, _ *http.Request) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	count := 0
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), ") Z ") {
			count++
		}
	}
	fmt.Fprintln(w, count, "zombies")
}
