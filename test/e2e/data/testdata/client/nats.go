package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"
)

// stream creates the stream S, publishes a message to it, or counts its messages.
func stream(_ context.Context, c credentials, request string) (string, error) {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", c.Host, c.Port), 5*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if c.TLS.Required {
		config, err := c.trust()
		if err != nil {
			return "", err
		}
		if _, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil { // the server waits for the client then
			return "", err
		}
		conn = tls.Client(conn, config)
	}
	user, err := json.Marshal(map[string]any{"user": c.Username, "pass": c.Password, "verbose": false})
	if err != nil {
		return "", err
	}
	subject, payload := "s.x", request
	switch request {
	case "create":
		subject, payload = "$JS.API.STREAM.CREATE.S", `{"name": "S", "subjects": ["s.*"], "storage": "file"}`
	case "count":
		subject, payload = "$JS.API.STREAM.INFO.S", ""
	}
	fmt.Fprintf(conn, "CONNECT %s\r\nSUB in 1\r\nPUB %s in %d\r\n%s\r\n", user, subject, len(payload), payload)
	var answer struct {
		Error *struct{ Description string }
		State struct{ Messages int }
		Seq   int
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "-ERR") {
			return "", fmt.Errorf("%s", line)
		}
		if strings.HasPrefix(line, "MSG in ") && lines.Scan() {
			if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
				return "", err
			}
			if answer.Error != nil {
				return "", fmt.Errorf("%s", answer.Error.Description)
			}
			if request == "count" {
				return fmt.Sprint(answer.State.Messages), nil
			}
			return "done", nil
		}
	}
	return "", fmt.Errorf("no answer")
}
