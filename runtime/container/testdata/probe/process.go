package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// die leaves sig to the kernel and sends it to the process itself.
func die(sig syscall.Signal) {
	var act [4]uintptr
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	_ = syscall.Kill(os.Getpid(), sig)
	time.Sleep(10 * time.Second) // where it did nothing
	fmt.Println("survived")
}

// traced goes on after two signals, and ends by the third.
func traced() {
	runtime.LockOSThread()
	trace := func() { _, _, _ = syscall.RawSyscall(syscall.SYS_PTRACE, syscall.PTRACE_TRACEME, 0, 0) }
	for _, sig := range []syscall.Signal{syscall.SIGURG, syscall.SIGTRAP} {
		trace()
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
	}
	fmt.Println("went on")
	trace()
	die(syscall.SIGTERM)
}

// orphans makes processes whose parent ends first, and counts the zombies.
func orphans(count int) {
	made := 0
	for tries := 0; made < count && tries < 500; {
		err := orphan()
		if errors.Is(err, syscall.EAGAIN) { // until others are reaped
			tries++
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil {
			fmt.Println(err)
		}
		made++
	}
	for range 500 {
		if zombies() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(made, "orphans,", zombies(), "zombies")
}

func zombies() (count int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		data, _ := os.ReadFile(f)
		if strings.Contains(string(data), ") Z ") {
			count++
		}
	}
	return count
}

// orphan starts a process that starts another one, and ends. Neither runs
// anything of Go but these calls.
func orphan() error {
	pid, errno := clone()
	if pid == 0 && errno == 0 {
		_, errno = clone()
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

func clone() (uintptr, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	return pid, errno
}

func bomb() {
	var act [4]uintptr
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGTERM), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	for failed := 0; failed < 10; {
		pid, errno := clone()
		if pid == 0 && errno == 0 {
			for {
				_, _, _ = syscall.RawSyscall(syscall.SYS_PPOLL, 0, 0, 0)
			}
		}
		if errno != 0 {
			failed++
			time.Sleep(time.Millisecond)
		}
	}
	fmt.Println("ready")
	pause()
}
