// An app for the Go buildpack that compiles quickly: it speaks HTTP without
// package net/http.
package main

import (
	"bufio"
	"net"
	"os"
	"strings"
)

func main() {
	l, err := net.Listen("tcp", ":"+os.Getenv("PORT"))
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			continue
		}
		go answer(conn)
	}
}

// answer answers one request.
func answer(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	first, err := in.ReadString('\n')
	for line := first; err == nil && strings.TrimSpace(line) != ""; {
		line, err = in.ReadString('\n')
	}
	if err != nil {
		return
	}
	if strings.HasPrefix(first, "GET /crash ") {
		println("was asked to crash")
		os.Exit(1)
	}
	const body = "hello from hello-go\n"
	conn.Write([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 20\r\n\r\n" + body))
}
