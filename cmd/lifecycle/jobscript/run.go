package jobscript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/contract"
)

// Main runs a script: the arguments are its options, its program and the program's arguments.
func Main(args []string) int {
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "script:", err)
		return 1
	}
	return code
}

func run(args []string) (code int, err error) {
	if len(args) < 2 {
		return 0, errors.New("usage: script OPTIONS PROGRAM ARGUMENT…")
	}
	var o contract.ScriptOptions
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return 0, fmt.Errorf("read options: %w", err)
	}
	// What the script leaves behind becomes a child of this process, which can wait for it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("adopt what the script leaves behind: %w", err)
	}
	all, err := begin(o, os.Stdin, contract.Init)
	defer all.remove()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "script:", err)
		return notStarted(err), nil
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}()
	return all.wait(cmd.Process.Pid), nil
}

// lingering is how long what a script leaves behind has to end: most often it writes the last lines to a log file.
const lingering = 5 * time.Second

// wait returns the exit code of the script, when what it left behind has ended or had time to.
func (all standIns) wait(script int) int {
	codes, gone := make(chan int, 1), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, 0, nil)
			switch {
			case errors.Is(err, syscall.EINTR):
			case err != nil: // there is no child left
				return
			case pid == script:
				codes <- codeOf(status)
			default:
				all.ended(pid, status)
			}
		}
	}()
	code := <-codes
	all.remove()
	late := time.NewTimer(lingering)
	defer late.Stop()
	select {
	case <-gone:
	case <-late.C:
	}
	return code
}

// notStarted returns a shell's exit code for a program that did not start.
func notStarted(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return 127
	}
	return 126
}

// codeOf returns an exit code as a shell says it.
func codeOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
