package sshproxy

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/fault"
	"cupola/server/bosh/sshsession"
	"cupola/store/cf"
)

// gitUser is the user name of those who push: the key says who they are.
const gitUser = "git"

// maxGitSessions is how many sessions a connection of the user git has at once.
const maxGitSessions = 4

// Git serves users who log in as git by a key. The zero value lets none in.
type Git struct {
	// Owner returns whose a key is.
	Owner func(ctx context.Context, fingerprint string) (cf.Identity, error)
	// Run runs a command, or what there is in place of a shell for "", and returns the
	// exit code.
	Run func(ctx context.Context, c Command) int
}

// Command is what a session of the user git runs.
type Command struct {
	Who         cf.Identity
	Fingerprint string // of the key
	From        string // address of the user
	Line        string
	In          io.ReadCloser
	Out, Err    io.Writer
}

const fingerprintOf = "fingerprint" // the permission that has the key's

// byKey offers the user git the login by key alone, and lets gateways in; all others get the methods that they
// had without it.
func (p *Proxy) byKey(ctx context.Context) func(ssh.ConnMetadata) (*ssh.Permissions, error) {
	return func(meta ssh.ConnMetadata) (*ssh.Permissions, error) {
		if strings.HasPrefix(meta.User(), sshsession.GatewayPrefix) {
			return p.admitGateway(meta.User())
		}
		if meta.User() != gitUser || p.Git.Owner == nil {
			return nil, errLogin
		}
		return nil, &ssh.PartialSuccessError{Next: ssh.ServerAuthCallbacks{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			fingerprint := ssh.FingerprintSHA256(key)
			if _, err := p.Git.Owner(ctx, fingerprint); err != nil {
				return nil, err
			}
			return &ssh.Permissions{Extensions: map[string]string{fingerprintOf: fingerprint}}, nil
		}}}
	}
}

// serveGit serves a connection of the user git until it ends.
func (p *Proxy) serveGit(ctx context.Context, user *ssh.ServerConn, channels <-chan ssh.NewChannel, greeted, begun func()) {
	fingerprint := user.Permissions.Extensions[fingerprintOf]
	who, err := p.Git.Owner(ctx, fingerprint)
	if err != nil {
		refuseAll(channels, err)
		return
	}
	if !p.users.Take(who.UserGUID) {
		refuseAll(channels, errMany)
		return
	}
	defer p.users.Put(who.UserGUID)
	greeted()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(connectionEnd(user), cancel)()
	places := make(chan struct{}, maxGitSessions)
	var open sync.WaitGroup
	defer open.Wait()
	for c := range channels {
		if c.ChannelType() != "session" {
			_ = c.Reject(ssh.Prohibited, "the user git pushes apps, and forwards nothing")
			continue
		}
		if !tryAcquire(places) {
			_ = c.Reject(ssh.ResourceShortage, "too many sessions at once")
			continue
		}
		begun()
		open.Go(fault.Func("sshproxy", func() {
			defer func() { <-places }()
			p.gitSession(ctx, c, Command{Who: who, Fingerprint: fingerprint, From: user.RemoteAddr().String()})
		}))
	}
	cancel()
}

// gitSession runs the one command of a session. Requests besides it, as for a terminal or
// variables, are refused.
func (p *Proxy) gitSession(ctx context.Context, c ssh.NewChannel, command Command) {
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(greetTime, func() { _ = channel.Close() }) // a session without a command
	defer idle.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel() // the client has closed the session
	began := false
	for r := range requests {
		line, ok := commandOf(r)
		ok = ok && !began
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		if !ok {
			continue
		}
		began = true
		idle.Stop()
		command.Line, command.In, command.Out, command.Err = line, channel, channel, channel.Stderr()
		running.Go(fault.Func("sshproxy", func() {
			defer channel.Close()
			exit := p.Git.Run(ctx, command)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(exit)}))
		}))
	}
}

// commandOf is the command that a request is for, "" for a shell.
func commandOf(r *ssh.Request) (line string, ok bool) {
	switch r.Type {
	case "shell":
		return "", true
	case "exec":
		var command struct{ Line string }
		err := ssh.Unmarshal(r.Payload, &command)
		return command.Line, err == nil && command.Line != ""
	}
	return "", false
}
