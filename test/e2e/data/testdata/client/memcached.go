package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// cache does "set KEY TEXT" or "get KEY".
func cache(_ context.Context, c credentials, request string) (string, error) {
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(c.URI, "memcached://"), 5*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	lines := bufio.NewReader(conn)
	verb, rest, _ := strings.Cut(request, " ")
	key, text, _ := strings.Cut(rest, " ")
	if verb == "set" {
		fmt.Fprintf(conn, "set %s 0 0 %d\r\n%s\r\n", key, len(text), text)
		stored, err := lines.ReadString('\n')
		return strings.TrimSpace(stored), err
	}
	fmt.Fprintf(conn, "get %s\r\n", key)
	if found, err := lines.ReadString('\n'); err != nil || strings.HasPrefix(found, "END") {
		return "", err
	}
	value, err := lines.ReadString('\n')
	return strings.TrimSpace(value), err
}
