// Command sshd is an sshd that an LRP brings: it says what it is asked to run, to
// whom knows the password.
//
//	sshd PORT USER PASSWORD
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
)

func main() {
	fmt.Println(run(os.Args[1], os.Args[2], os.Args[3]))
	os.Exit(1)
}

func run(port, user, password string) error {
	config := &ssh.ServerConfig{PasswordCallback: func(m ssh.ConnMetadata, got []byte) (*ssh.Permissions, error) {
		if m.User() != user || string(got) != password {
			return nil, errors.New("wrong password")
		}
		return nil, nil
	}}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return err
	}
	config.AddHostKey(signer)
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go serve(conn, config)
	}
}

func serve(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			_ = r.Reply(r.Type == "exec", nil)
			if r.Type != "exec" {
				continue
			}
			fmt.Fprintf(channel, "in %s: %s", os.Getenv("CF_INSTANCE_GUID"), r.Payload[4:])
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{3}))
			channel.Close()
		}
	}
}
