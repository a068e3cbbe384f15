// The init command is a bare lifecycle helper for the tests of this package:
// it joins the cgroups, installs the seccomp filter and executes its arguments.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

func main() {
	runtime.LockOSThread() // each thread has its own cgroup and filter
	args := os.Args[1:]
	var filter string
	for len(args) > 1 && args[0] != "--" {
		switch args[0] {
		case "--seccomp":
			filter = args[1]
		case "--cgroup-fds":
			join(args[1])
		}
		args = args[2:]
	}
	install(filter)
	args = args[1:]
	check("exec "+args[0], syscall.Exec(args[0], args, os.Environ()))
}

func join(fds string) {
	for _, text := range strings.Split(fds, ",") {
		fd, err := strconv.Atoi(text)
		check("parse", err)
		_, err = syscall.Write(fd, []byte("0"))
		check("join cgroup", err)
		check("close", syscall.Close(fd))
	}
}

func install(path string) {
	program, err := os.ReadFile(path)
	check("read filter", err)
	prog := struct {
		length uint16
		filter *byte
	}{uint16(len(program) / 8), &program[0]}
	const setSeccomp, modeFilter = 22, 2
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setSeccomp, modeFilter, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		check("install filter", errno)
	}
	for fd := 3; fd < 64; fd++ {
		syscall.CloseOnExec(fd)
	}
}

func check(what string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "init:", what+":", err)
		os.Exit(125)
	}
}
