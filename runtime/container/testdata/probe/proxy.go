package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
)

// proxy tells each client of two inherited sockets what it is, and ends with the code
// that a client says.
func proxy() {
	for fd := uintptr(3); fd < 5; fd++ {
		l, err := net.FileListener(os.NewFile(fd, "port"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go tell(c)
			}
		}()
	}
	select {}
}

func tell(c net.Conn) {
	entries, _ := os.ReadDir("/proc/self/fd")
	high := 0
	for _, e := range entries {
		if fd, _ := strconv.Atoi(e.Name()); fd > high && fd < 5 {
			high = fd
		}
	}
	fmt.Fprintln(c, os.Getpid(), c.LocalAddr().(*net.TCPAddr).Port, len(os.Environ()), high)
	for said := bufio.NewScanner(c); said.Scan(); {
		code, _ := strconv.Atoi(said.Text())
		os.Exit(code)
	}
}
