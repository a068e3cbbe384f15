package sshproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"cupola/store/cf"
)

// login is how a client logs in as the user git.
func (h *harness) login(auth ...ssh.AuthMethod) (*ssh.Client, error) {
	h.t.Helper()
	c, err := ssh.Dial("tcp", h.addr, &ssh.ClientConfig{User: gitUser, Auth: auth, HostKeyCallback: ssh.FixedHostKey(h.proxy.HostKey.PublicKey())})
	if err == nil {
		h.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// TestGitUser logs in by keys, runs commands and asks for what the user git does not get.
func TestGitUser(t *testing.T) {
	h := newHarness(t)
	key, stranger := newKey(t), newKey(t)
	ended := make(chan error, 1)
	h.proxy.Git = Git{
		Owner: func(_ context.Context, fingerprint string) (cf.Identity, error) {
			if fingerprint == ssh.FingerprintSHA256(key.PublicKey()) {
				return cf.Identity{UserGUID: "user-1", Username: "one"}, nil
			}
			return cf.Identity{}, errors.New("unknown")
		},
		Run: func(ctx context.Context, c Command) int {
			if c.Line == "wait" {
				<-ctx.Done()
				ended <- ctx.Err()
				return 1
			}
			in, _ := io.ReadAll(c.In)
			fmt.Fprintf(c.Out, "%s runs %q with %s", c.Who.Username, c.Line, in)
			return 7
		},
	}
	for name, auth := range map[string]ssh.AuthMethod{"another key": ssh.PublicKeys(stranger), "a password": ssh.Password("developer")} {
		if _, err := h.login(auth); err == nil {
			t.Errorf("%s lets the user git in", name)
		}
	}
	if _, err := ssh.Dial("tcp", h.addr, &ssh.ClientConfig{User: "cf:app/0", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(h.proxy.HostKey.PublicKey())}); err == nil {
		t.Error("a key lets a user into an app")
	}
	c, err := h.login(ssh.PublicKeys(stranger, key))
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	session.Stdin = strings.NewReader("input")
	out, err := session.Output("some command")
	exit, ok := errors.AsType[*ssh.ExitError](err)
	if !ok || exit.ExitStatus() != 7 || string(out) != `one runs "some command" with input` {
		t.Errorf("got %q, %v", out, err)
	}
	if err := open(c, "direct-tcpip", ""); err == nil || !strings.Contains(err.Error(), "forwards nothing") {
		t.Errorf("forwarding: got %v", err)
	}
	for _, request := range []string{"pty-req", "subsystem", "x11-req", "auth-agent-req@openssh.com"} {
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.SendRequest(request, true, nil); ok || err != nil {
			t.Errorf("%s: got %t, %v", request, ok, err)
		}
		_ = s.Close()
	}
	waits, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := waits.Start("wait"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("a command goes on after its connection has ended")
	}
}
