// Package sshd is the SSH server inside a container: what diego-sshd is to
// Diego, but started for one connection and ended with it. It speaks SSH over
// its standard input and output to the daemon's proxy, which has let the user
// in, so it asks for no further proof.
//
// What its sessions started ends with the connection, be that because the user
// left, the daemon was killed or the instance ends.
package sshd

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/signal"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// Main serves one connection on the standard input and output, and returns the
// exit code once nothing of its sessions is left.
func Main([]string) int {
	// A daemon that has gone must not end this with its first unread byte,
	// before the sessions have ended. Not ignored: programs would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	kin := adopt()
	defer kin.end()
	if err := serve(stdio{}, kin); err != nil {
		fmt.Fprintf(os.Stderr, "sshd: %v\n", err)
		return 1
	}
	return 0
}

// serve serves one connection until it ends.
func serve(conn net.Conn, kin *kin) error {
	config, err := serverConfig()
	if err != nil {
		return err
	}
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return fmt.Errorf("greet the proxy: %w", err)
	}
	go ssh.DiscardRequests(requests)
	s := &sshd{kin: kin, env: environment(os.Environ()), home: home()}
	for c := range channels {
		go s.open(c)
	}
	_ = server.Wait() // says how the connection ended, which is all the same
	return nil
}

// serverConfig makes a new host key for each connection. The other end is a pipe
// that only the daemon holds, so no client checks the key.
func serverConfig() (*ssh.ServerConfig, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	c := &ssh.ServerConfig{NoClientAuth: true}
	// The cheapest there is: this leg stays in the machine's memory.
	c.KeyExchanges = []string{ssh.KeyExchangeCurve25519}
	c.Ciphers = []string{ssh.CipherAES128GCM}
	c.AddHostKey(signer)
	return c, nil
}

// sshd is one connection.
type sshd struct {
	kin  *kin
	env  []string // of every session
	home string
}

func (s *sshd) open(c ssh.NewChannel) {
	switch c.ChannelType() {
	case "session":
		s.session(c)
	case "direct-tcpip":
		forward(c)
	default:
		_ = c.Reject(ssh.UnknownChannelType, "unknown channel type "+c.ChannelType())
	}
}

// stdio is the connection to the daemon.
type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }

// Close leaves standard input alone: a read of it may be under way, and would
// be waited for.
func (stdio) Close() error { return os.Stdout.Close() }

func (stdio) LocalAddr() net.Addr              { return pipeAddr{} }
func (stdio) RemoteAddr() net.Addr             { return pipeAddr{} }
func (stdio) SetDeadline(time.Time) error      { return nil }
func (stdio) SetReadDeadline(time.Time) error  { return nil }
func (stdio) SetWriteDeadline(time.Time) error { return nil }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
