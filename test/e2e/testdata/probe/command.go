package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// command does one thing, as a task.
func command(name string, args []string) (status int) {
	switch name {
	case "eat":
		eat(nil, nil)
	case "limits":
		fmt.Println("nofile", limit(syscall.RLIMIT_NOFILE), "nproc", limit(rlimitNproc))
	case "fill":
		size, _ := strconv.Atoi(args[1])
		if err := os.WriteFile(args[0], []byte(strings.Repeat("x", size)), 0o644); err != nil {
			fmt.Println(err)
			return 1
		}
	case "fork":
		fork(args[0])
	case "say":
		for range 100 {
			fmt.Println(strings.Repeat("x", 100))
		}
	case "reach":
		reach(args)
	case "rotated":
		if err := rotation(time.Minute); err != nil {
			fmt.Println(err)
			return 1
		}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("deaf to SIGTERM")
		time.Sleep(time.Hour)
	case "sleep":
		time.Sleep(time.Hour)
	}
	return 0
}

const rlimitNproc = 6

func limit(resource int) uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(resource, &l); err != nil {
		return 0
	}
	return l.Cur
}

// fork starts processes until it cannot, and says how many it were.
func fork(most string) {
	n, _ := strconv.Atoi(most)
	for i := range n {
		if err := exec.Command(os.Args[0], "sleep").Start(); err != nil {
			fmt.Println("forked some:", i > 0, err)
			return
		}
	}
	fmt.Println("forked all")
}
