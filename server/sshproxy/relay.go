package sshproxy

import (
	"errors"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/fault"
)

// relay opens in the container what the user opens, and joins the two, until
// the user's connection ends. It returns when all channels have. A command is changed by
// command first, unless that is nil.
func relay(channels <-chan ssh.NewChannel, to ssh.Conn, command func(string) string) {
	places := make(chan struct{}, maxChannels)
	var open sync.WaitGroup
	defer open.Wait()
	defer to.Close()
	for c := range channels {
		if kind := c.ChannelType(); kind != "session" && kind != "direct-tcpip" {
			_ = c.Reject(ssh.UnknownChannelType, "unknown channel type")
			continue
		}
		if !tryAcquire(places) {
			_ = c.Reject(ssh.ResourceShortage, "too many sessions and forwarded connections at once")
			continue
		}
		open.Go(fault.Func("sshproxy", func() {
			defer func() { <-places }()
			relayChannel(c, to, command)
		}))
	}
}

// relayChannel is one channel from its opening to its end.
func relayChannel(c ssh.NewChannel, to ssh.Conn, command func(string) string) {
	inner, innerRequests, err := to.OpenChannel(c.ChannelType(), c.ExtraData())
	if refused, ok := errors.AsType[*ssh.OpenChannelError](err); ok {
		_ = c.Reject(refused.Reason, refused.Message)
		return
	}
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, "the instance has ended")
		return
	}
	user, userRequests, err := c.Accept()
	if err != nil {
		_ = inner.Close()
		fault.Go("sshproxy", func() { ssh.DiscardRequests(innerRequests) })
		return
	}
	fault.Go("sshproxy", func() {
		_, _ = io.Copy(inner, user)
		_ = inner.CloseWrite()
	})
	var answering sync.Mutex
	fault.Go("sshproxy", func() {
		forward(userRequests, inner, &answering, command)
		_ = inner.Close()
	})
	fromContainer(inner, innerRequests, user)
	answering.Lock() // of a command that has ended at once the user may not know yet that it began
	defer answering.Unlock()
	_ = user.Close()
}

// fromContainer passes on all that the container sends. The channel can be closed
// after it alone: the exit status comes as a request next to the output.
func fromContainer(inner ssh.Channel, requests <-chan *ssh.Request, user ssh.Channel) {
	var output, all sync.WaitGroup
	output.Go(fault.Func("sshproxy", func() { _, _ = io.Copy(user.Stderr(), inner.Stderr()) }))
	output.Go(fault.Func("sshproxy", func() { _, _ = io.Copy(user, inner) }))
	all.Go(fault.Func("sshproxy", func() {
		output.Wait()
		_ = user.CloseWrite() // of both: what came on the standard error after it would be lost
	}))
	all.Go(fault.Func("sshproxy", func() { forward(requests, user, new(sync.Mutex), nil) }))
	all.Wait()
}

// forward passes requests on, and the answers back, until there are no more. From
// a request to its answer answering is locked. A command is changed by command, unless that
// is nil.
func forward(requests <-chan *ssh.Request, to ssh.Channel, answering *sync.Mutex, command func(string) string) {
	for r := range requests {
		if line, ok := commandOf(r); ok && line != "" && command != nil {
			r.Payload = ssh.Marshal(struct{ Line string }{command(line)})
		}
		forwardOne(r, to, answering)
	}
}

func forwardOne(r *ssh.Request, to ssh.Channel, answering *sync.Mutex) {
	answering.Lock()
	defer answering.Unlock()
	ok, err := to.SendRequest(r.Type, r.WantReply, r.Payload)
	if r.WantReply {
		_ = r.Reply(ok && err == nil, nil)
	}
}
