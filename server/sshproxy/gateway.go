package sshproxy

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/bosh/sshsession"
	"cupola/server/control/access"
	"cupola/store"
	"cupola/store/cf"
)

// The bosh CLI runs ssh with `ssh -W ADDRESS:22 -l GATEWAY …` as its ProxyCommand. The proxy
// is that gateway: its user is the secret name of one session, and all that it forwards to are
// the addresses of the session's instances, where the proxy itself speaks SSH a second time,
// with the client's key.

const instancePort = 22

var (
	errGatewayEnded = errors.New("this SSH session of the bosh CLI has ended, or the daemon was restarted: run the command again")
	errGatewayOnly  = errors.New("this user forwards to port 22 of the instances of one SSH session of the bosh CLI, and does nothing else")
	errKey          = errors.New("this is not the user and key of the SSH session")
)

// admitGateway lets a session's gateway in without a proof: what it leads to asks for one.
// Others may show keys, none of which is accepted, so that clients ask their users for no
// password.
func (p *Proxy) admitGateway(name string) (*ssh.Permissions, error) {
	if _, ok := p.Sessions.Find(name); ok {
		return nil, nil
	}
	return nil, &ssh.PartialSuccessError{Next: ssh.ServerAuthCallbacks{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		return nil, errGatewayEnded
	}}}
}

// banner tells a gateway that has ended why it is not let in.
func (p *Proxy) banner(meta ssh.ConnMetadata) string {
	if !strings.HasPrefix(meta.User(), sshsession.GatewayPrefix) {
		return ""
	}
	if _, ok := p.Sessions.Find(meta.User()); ok {
		return ""
	}
	return errGatewayEnded.Error() + "\r\n"
}

// serveGateway forwards to the instances of a session until the connection ends: it ends with
// the last session in an instance, since no budget counts what is open after that.
func (p *Proxy) serveGateway(ctx context.Context, gateway *ssh.ServerConn, channels <-chan ssh.NewChannel, greeted, begun func()) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(connectionEnd(gateway), cancel)()
	places := make(chan struct{}, maxChannels)
	var forwarding atomic.Int32
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	for c := range channels {
		instance, err := p.destination(gateway.User(), c)
		if err != nil {
			_ = c.Reject(ssh.Prohibited, err.Error())
			continue
		}
		if !tryAcquire(places) {
			_ = c.Reject(ssh.ResourceShortage, "too many forwarded connections at once")
			continue
		}
		forwarding.Add(1)
		open.Go(fault.Func("sshproxy", func() {
			defer func() {
				<-places
				if forwarding.Add(-1) == 0 {
					_ = gateway.Close()
				}
			}()
			p.serveInstance(ctx, gateway, c, instance, greeted, begun)
		}))
	}
}

// destination is the GUID of the instance that a channel is for.
func (p *Proxy) destination(gateway string, c ssh.NewChannel) (instance string, err error) {
	var to struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}
	if c.ChannelType() != "direct-tcpip" || ssh.Unmarshal(c.ExtraData(), &to) != nil || to.Port != instancePort {
		return "", errGatewayOnly
	}
	session, ok := p.Sessions.Find(gateway)
	if !ok {
		return "", errGatewayEnded
	}
	if instance = session.Instances[to.Host]; instance == "" {
		return "", errGatewayOnly
	}
	return instance, nil
}

// forwarded is a connection through the gateway.
type forwarded struct {
	pipe
	from net.Addr
}

// RemoteAddr is the address of the gateway's client.
func (f *forwarded) RemoteAddr() net.Addr { return f.from }

// serveInstance speaks SSH on a channel for an instance.
func (p *Proxy) serveInstance(ctx context.Context, gateway *ssh.ServerConn, c ssh.NewChannel, instance string, greeted, begun func()) {
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	fault.Go("sshproxy", func() { ssh.DiscardRequests(requests) })
	conn := &forwarded{pipe{ReadWriteCloser: channel}, gateway.RemoteAddr()}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	late := time.AfterFunc(greetTime, func() { _ = conn.Close() })
	defer late.Stop()
	var to target
	user, channels, requests, err := ssh.NewServerConn(conn, p.instanceConfig(ctx, gateway, instance, &to))
	if err != nil {
		p.Log.DebugContext(ctx, "ssh connection through the gateway refused", "address", conn.from.String(), "err", err)
		return
	}
	fault.Go("sshproxy", func() { ssh.DiscardRequests(requests) })
	defer user.Close()
	if !p.users.Take(to.user) {
		refuseAll(channels, errMany)
		return
	}
	defer p.users.Put(to.user)
	greeted()
	err = p.session(ctx, user, channels, to, func() {
		late.Stop()
		begun()
	})
	if err != nil {
		p.Log.WarnContext(ctx, "ssh session not begun", "instance_guid", to.instanceGUID, "err", err)
		refuseAll(channels, err)
	}
}

// instanceConfig accepts the key of the gateway's session.
func (p *Proxy) instanceConfig(ctx context.Context, gateway *ssh.ServerConn, instance string, to *target) *ssh.ServerConfig {
	c := &ssh.ServerConfig{MaxAuthTries: maxTries, ServerVersion: "SSH-2.0-cupola", PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		session, ok := p.Sessions.Find(gateway.User())
		if !ok || !session.Accepts(meta.User(), key) {
			return nil, errKey
		}
		admitted, err := p.admitSession(ctx, session, instance)
		if err != nil {
			p.Log.InfoContext(ctx, "ssh login refused", "user", printable(session.Who.Actor().Name), "address", gateway.RemoteAddr().String(), "err", err)
			return nil, &ssh.BannerError{Err: err, Message: err.Error() + "\r\n"}
		}
		*to = admitted
		return nil, nil
	}}
	c.AddHostKey(p.HostKey)
	return c
}

// admitSession finds the container of an instance that a session leads to: that of its first
// process that runs. The user who set up the session must still be an admin.
func (p *Proxy) admitSession(ctx context.Context, s sshsession.Session, instance string) (to target, err error) {
	var refusal error
	err = p.Store.Read(ctx, func(tx *store.Tx) error {
		actor, err := access.Actor(tx, s.Who.Actor(), s.Who.Scopes)
		if err != nil {
			return err
		}
		if !access.DirectorAdmin(actor, s.Who.Scopes) {
			refusal = errDeployment
			return nil
		}
		i, actual, err := firstProcess(tx, s.Deployment, instance)
		switch {
		case err != nil:
			return err
		case actual == nil:
			refusal = errNotRunning
			return nil
		}
		to = deploymentInstance(actor.GUID, actual, i)
		to.command = withoutSudo
		return nil
	})
	if err != nil {
		p.Log.ErrorContext(ctx, "ssh login not checked", "instance", instance, "err", err)
		return target{}, errUnentered
	}
	return to, refusal
}

// firstProcess is the process of an instance that runs and is the first by name; nil if none
// does.
func firstProcess(tx *store.Tx, deployment, instance string) (i *cf.BOSHInstance, first *lrp.Actual, err error) {
	i, err = store.BOSHInstances.Get(tx, instance)
	if store.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	all, err := store.ActualLRPs.By(tx, "domains", lrp.BOSHDomain(deployment))
	for _, a := range all {
		if a.Owner.GUID == instance && a.State == lrp.Running && a.InstanceGUID != "" && (first == nil || a.Owner.Part < first.Owner.Part) {
			first = a
		}
	}
	return i, first, err
}

// withoutSudo is a command without the sudo that begins those of the bosh CLI (`logs --follow`)
// and of operators: sessions are those of vcap, and there is no other user to become.
func withoutSudo(command string) string {
	if rest, ok := strings.CutPrefix(command, "sudo "); ok && !strings.HasPrefix(rest, "-") {
		return rest
	}
	return command
}
