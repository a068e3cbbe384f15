// The probe command is the app that the tests of this package run: it prints,
// waits, ends or tries what it must not be able to do.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

func main() {
	switch os.Args[1] {
	case "echo":
		fmt.Println(os.Args[2])
	case "exit":
		code, _ := strconv.Atoi(os.Args[2])
		os.Exit(code)
	case "sleep":
		fmt.Println("ready")
		pause()
	case "spin": // on the first processor, and no other
		fmt.Println("ready")
		spin()
	case "catch": // ends with 7 on SIGTERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		fmt.Println("bye")
		os.Exit(7)
	case "default": // leaves SIGTERM to the kernel, as programs without a runtime do
		var act [4]uintptr
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGTERM), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
		fmt.Println("ready")
		pause()
	case "cat":
		data, err := os.ReadFile(os.Args[2])
		fmt.Print(string(data))
		if err != nil {
			fmt.Println("error:", err)
		}
	case "ls":
		entries, err := os.ReadDir(os.Args[2])
		for _, e := range entries {
			fmt.Println(e.Name())
		}
		if err != nil {
			fmt.Println("error:", err)
		}
	case "connect": // to a socket
		_, err := net.Dial("unix", os.Args[2])
		fmt.Println(err)
	case "hog": // touches megabytes of memory
		mb, _ := strconv.Atoi(os.Args[2])
		hog := make([]byte, mb<<20)
		for i := 0; i < len(hog); i += 4096 {
			hog[i] = 1
		}
		fmt.Println("survived")
	case "take": // takes all that the kernel allows a user
		runtime.LockOSThread() // whose signals wait
		take()
	case "modest":
		runtime.LockOSThread()
		modest()
	case "scan": // for words in /proc and /sys
		scan(os.Args[2:])
	case "isolation": // for the table in docs/security.md
		isolation(os.Args[2:])
	case "hostile":
		hostile()
	case "usurp": // moves the helper away
		usurp()
	case "fork": // starts processes until it may not
		fork()
	case "leave":
		leave()
	case "die": // ends by a signal it sends itself
		sig, _ := strconv.Atoi(os.Args[2])
		die(syscall.Signal(sig))
	case "traced": // asks its parent to trace it, before each of three signals
		traced()
	case "defy": // does to PID 1 what must not end it
		fmt.Println("kill:", syscall.Kill(1, syscall.SIGKILL), syscall.Kill(1, syscall.SIGSTOP))
		os.Exit(5)
	case "ask": // has PID 1 forward a signal
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("kill:", syscall.Kill(1, syscall.SIGTERM))
		<-c
		os.Exit(7)
	case "stop":
		fmt.Println("ready")
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		pause() // another thread may have it first
	case "bomb": // has as many processes as it may, until SIGTERM
		bomb()
	case "massacre":
		_ = syscall.Kill(-1, syscall.SIGKILL)
	case "orphans":
		count, _ := strconv.Atoi(os.Args[2])
		orphans(count)
	case "daemon": // leaves a process behind
		_, _ = os.StartProcess("/bin/probe", []string{"probe", "sleep"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}})
	case "proxy": // what the init starts for the clients of TLS ports
		proxy()
	case "lines":
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
			fmt.Println("got", s.Text())
		}
	}
}

// pause waits for ever: a signal by which the Go runtime interrupts its own threads does
// not end it.
func pause() {
	for {
		_ = syscall.Pause()
	}
}

func fork() {
	for n := 0; ; n++ {
		p, err := os.StartProcess("/bin/probe", []string{"probe", "sleep"}, &os.ProcAttr{})
		if err != nil {
			fmt.Println(n, "processes, then", err)
			return
		}
		_ = p.Release()
	}
}

// leave ends its first thread with 3, and all with 5 when its input ends.
func leave() {
	runtime.LockOSThread()
	if syscall.Gettid() != os.Getpid() {
		os.Exit(1)
	}
	go func() {
		_, _ = io.ReadAll(os.Stdin)
		os.Exit(5)
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 3, 0, 0)
}

func usurp() {
	fmt.Println("rename:", os.Rename("/.cupola", "/moved"))
	fmt.Println("ready")
	pause()
}
