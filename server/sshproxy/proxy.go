// Package sshproxy is `cf ssh`: an SSH server that lets users into the
// containers of their apps, as Diego's ssh-proxy does. The user name says which
// instance, the password is a one-time code of the UAA. Admins enter processes of BOSH
// deployments likewise (`cupola deployment ssh`), or by a key that the bosh CLI made. The proxy checks both,
// has the lifecycle's sshd started inside the container, and passes channels
// and requests on: what a session does, it does there. Besides them it lets in the
// user git, by a registered key, for git push alone.
package sshproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/bosh/sshsession"
	"cupola/server/bulkhead"
	"cupola/store"
	"cupola/store/cf"
)

// Config is what the proxy needs from the rest of the daemon.
type Config struct {
	Store   *store.Store
	HostKey ssh.Signer
	// Redeem returns whom a one-time code was issued to. A code is valid once.
	Redeem func(ctx context.Context, code string) (cf.Identity, error)
	// Diego returns the password of users diego:<process-guid>/<index>; "" lets none
	// in. nil is the same.
	Diego func() string
	// Git serves the user git.
	Git Git
	// Attach starts the lifecycle's sshd in the container of an instance and
	// gives its standard input and output.
	Attach func(ctx context.Context, instanceGUID string) (io.ReadWriteCloser, error)
	// Hold wakes an app, if it sleeps, and keeps it awake until release is called; nil: apps
	// do not sleep.
	Hold func(ctx context.Context, appGUID string) (release func(), err error)
	// Logs takes the lines that an app's log says of sessions.
	Logs func(lrp.LogLine)
	Log  *slog.Logger
	// MaxConnections is how many there may be; 0 is 256. A user has half of what
	// is left at most.
	MaxConnections int
}

// The limits of the proxy.
const (
	maxTries       = 6                // passwords or keys of one connection: OpenSSH's
	greetTime      = 30 * time.Second // from connection to session
	maxConnections = 256
	maxChannels    = 128 // of one connection
)

// Proxy serves SSH.
type Proxy struct {
	Config
	Sessions  *sshsession.Sessions // of the bosh CLI
	strangers *window
	greeting  *bulkhead.Strangers     // connections that have not shown a code yet: a quarter of all
	users     *bulkhead.Share[string] // sessions
}

// New returns a Proxy.
func New(c Config) *Proxy {
	c.MaxConnections = cmp.Or(c.MaxConnections, maxConnections)
	quarter := max(2, c.MaxConnections/4)
	return &Proxy{Config: c, Sessions: &sshsession.Sessions{}, strangers: &window{limit: strangersLimit, span: time.Minute},
		greeting: bulkhead.NewStrangers(quarter), users: bulkhead.NewShare[string](c.MaxConnections-quarter, 1)}
}

// Serve serves the connections of l until ctx ends, then ends the sessions,
// closes l and returns.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var connections sync.WaitGroup
	defer connections.Wait()
	defer cancel()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if err == nil {
				_ = conn.Close()
			}
			return nil
		}
		if err != nil {
			p.Log.WarnContext(ctx, "ssh connection not accepted", "err", err)
			if !pause(ctx) {
				return nil
			}
			continue
		}
		// In the order of arrival: a newcomer must not count as older than those before it.
		one, _ := p.greeting.Add(bulkhead.Address(conn.RemoteAddr()), func() { _ = conn.Close() })
		connections.Go(fault.Func("sshproxy", func() { p.greet(ctx, conn, one) }))
	}
}

// greet serves a connection, which may be ended for another until it has shown a
// code.
func (p *Proxy) greet(ctx context.Context, conn net.Conn, one *bulkhead.Stranger) {
	greeted := sync.OnceFunc(func() { p.greeting.Remove(one) })
	defer greeted()
	p.serve(ctx, conn, greeted)
}

// tryAcquire takes a place if one is free.
func tryAcquire(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

// pause waits a little, as for descriptors to be had again, and reports whether
// to go on.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(100 * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

// serve serves one connection; greeted is called once it is known who it is, and
// has a place.
func (p *Proxy) serve(ctx context.Context, conn net.Conn, greeted func()) {
	defer conn.Close()
	defer greeted()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(greetTime))
	var to target
	user, channels, requests, err := ssh.NewServerConn(conn, p.serverConfig(ctx, &to))
	if err != nil {
		p.Log.DebugContext(ctx, "ssh connection refused", "address", conn.RemoteAddr().String(), "err", err)
		return
	}
	fault.Go("sshproxy", func() { ssh.DiscardRequests(requests) })
	defer user.Close()
	begun := func() { _ = conn.SetDeadline(time.Time{}) }
	if user.User() == gitUser {
		p.serveGit(ctx, user, channels, greeted, begun)
		return
	}
	if strings.HasPrefix(user.User(), sshsession.GatewayPrefix) {
		p.serveGateway(ctx, user, channels, greeted, begun)
		return
	}
	if !p.users.Take(to.user) {
		refuseAll(channels, errMany)
		return
	}
	defer p.users.Put(to.user)
	greeted()
	if err := p.session(ctx, user, channels, to, begun); err != nil {
		p.Log.WarnContext(ctx, "ssh session not begun", "instance_guid", to.instanceGUID, "err", err)
		refuseAll(channels, err)
	}
}

// refuseAll answers every channel with the reason why there is none, for as
// long as the client has to have connected.
func refuseAll(channels <-chan ssh.NewChannel, err error) {
	for c := range channels {
		_ = c.Reject(ssh.ConnectionFailed, "the instance cannot be entered: "+err.Error())
	}
}

// session joins a user's connection to one to the container until either ends.
func (p *Proxy) session(ctx context.Context, user ssh.Conn, channels <-chan ssh.NewChannel, to target, begun func()) error {
	release, err := p.hold(ctx, to.log.GUID)
	if err != nil {
		return err
	}
	defer release()
	pipe, err := p.enter(ctx, to)
	if err != nil {
		return err
	}
	defer pipe.Close()
	// The client's own deadline ends a container that does not answer.
	left := connectionEnd(user)
	defer context.AfterFunc(left, func() { _ = pipe.Close() })()
	inner, inChannels, inRequests, err := ssh.NewClientConn(pipe, "container", to.config)
	if left.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("greet the container's sshd: %w", err)
	}
	defer inner.Close()
	fault.Go("sshproxy", func() { ssh.DiscardRequests(inRequests) })
	fault.Go("sshproxy", func() { rejectAll(inChannels) })
	begun()
	p.note(to, "Successful remote access by "+user.RemoteAddr().String())
	defer p.note(to, "Remote access ended for "+user.RemoteAddr().String())
	fault.Go("sshproxy", func() { // the instance has ended, or the connection to it
		_ = inner.Wait()
		_ = user.Close()
	})
	relay(channels, inner, to.command)
	return nil
}

// hold wakes an app and keeps it awake.
func (p *Proxy) hold(ctx context.Context, appGUID string) (release func(), err error) {
	if p.Hold == nil {
		return func() {}, nil
	}
	return p.Hold(ctx, appGUID)
}

// enter opens a connection to an sshd in the container: the one that the instance
// has, or one that is started for it.
func (p *Proxy) enter(ctx context.Context, to target) (net.Conn, error) {
	if to.address != "" {
		return fault.Dial("sshproxy", (&net.Dialer{Timeout: greetTime}).DialContext)(ctx, "tcp", to.address)
	}
	stream, err := p.Attach(ctx, to.instanceGUID)
	if err != nil {
		return nil, err
	}
	return &pipe{ReadWriteCloser: stream}, nil
}

// connectionEnd is a context that ends with the connection.
func connectionEnd(c ssh.Conn) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	fault.Go("sshproxy", func() {
		defer cancel()
		_ = c.Wait()
	})
	return ctx
}

// rejectAll refuses channels that a container opens towards the user: agents
// and X11 are not forwarded.
func rejectAll(channels <-chan ssh.NewChannel) {
	for c := range channels {
		_ = c.Reject(ssh.Prohibited, "not allowed")
	}
}

// note writes a line of Diego's about a session into the app's log.
func (p *Proxy) note(to target, text string) {
	p.Logs(lrp.LogLine{Target: to.log, At: time.Now(), Text: []byte(text)})
}

func (p *Proxy) serverConfig(ctx context.Context, to *target) *ssh.ServerConfig {
	c := &ssh.ServerConfig{
		MaxAuthTries:   maxTries,
		ServerVersion:  "SSH-2.0-cupola",
		BannerCallback: p.banner,
		NoClientAuth:   true, NoClientAuthCallback: p.byKey(ctx),
		PasswordCallback: func(meta ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			admit := p.admit
			switch user := meta.User(); {
			case strings.HasPrefix(user, diegoUser):
				admit = p.admitDiego
			case strings.HasPrefix(user, deploymentUser):
				admit = p.admitDeployment
			}
			admitted, err := admit(ctx, meta.User(), string(password))
			if err != nil {
				p.Log.InfoContext(ctx, "ssh login refused", "user", printable(meta.User()), "address", meta.RemoteAddr().String(), "err", err)
				return nil, &ssh.BannerError{Err: err, Message: err.Error() + "\r\n"}
			}
			*to = admitted
			return nil, nil
		},
	}
	c.AddHostKey(p.HostKey)
	return c
}

// clientConfig asks the container for no proof: the pipe leads there and
// nowhere else.
func clientConfig() *ssh.ClientConfig {
	return &ssh.ClientConfig{User: "cf", HostKeyCallback: func(string, net.Addr, ssh.PublicKey) error { return nil }}
}
