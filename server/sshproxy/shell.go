package sshproxy

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/fault"
	"cupola/server/control/access"
	"cupola/store"
	"cupola/store/cf"
)

// Terminal is what a shell reads and writes.
type Terminal struct {
	Columns, Rows uint32
	In            io.Reader
	Out           io.Writer
	Resized       <-chan [2]uint32 // columns, rows
	From          string           // where the user is, for the app's log
}

// Shell runs a login shell in an instance for a user who is known, as `cf ssh` does
// for one who shows a code, until it or ctx ends. It returns the exit code. The
// errors of a refusal are for the user to read.
func (p *Proxy) Shell(ctx context.Context, who cf.Identity, processGUID string, index int, t Terminal) (exit int, err error) {
	to, err := p.admitKnown(ctx, login{processGUID, index}, who)
	if err != nil {
		return 0, err
	}
	if !p.users.Take(to.user) {
		return 0, errMany
	}
	defer p.users.Put(to.user)
	session, end, err := p.open(ctx, to)
	if err != nil {
		p.Log.WarnContext(ctx, "terminal not opened", "instance_guid", to.instanceGUID, "err", err)
		return 0, errUnentered
	}
	defer end()
	p.note(to, "Successful remote access by "+t.From)
	defer p.note(to, "Remote access ended for "+t.From)
	return runShell(ctx, session, t)
}

// open opens a session in the container of a target, until end is called or ctx
// ends.
func (p *Proxy) open(ctx context.Context, to target) (session *ssh.Session, end func(), err error) {
	pipe, err := p.enter(ctx, to)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = pipe.Close() })
	end = func() {
		stop()
		_ = pipe.Close()
	}
	conn, channels, requests, err := ssh.NewClientConn(pipe, "container", to.config)
	if err == nil {
		session, err = ssh.NewClient(conn, channels, requests).NewSession()
	}
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("greet the container's sshd: %w", err)
	}
	return session, end, nil
}

func runShell(ctx context.Context, session *ssh.Session, t Terminal) (exit int, err error) {
	in, err := session.StdinPipe()
	if err != nil {
		return 0, err
	}
	session.Stdout = fault.Writer("sshproxy", t.Out)
	session.Stderr = session.Stdout
	if err := session.RequestPty("xterm-256color", int(t.Rows), int(t.Columns), ssh.TerminalModes{}); err != nil {
		return 0, err
	}
	if err := session.Shell(); err != nil {
		return 0, err
	}
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	fault.Go("sshproxy", func() {
		_, _ = io.Copy(in, t.In)
		_ = in.Close()
	})
	fault.Go("sshproxy", func() {
		for {
			select {
			case size := <-t.Resized:
				_ = session.WindowChange(int(size[1]), int(size[0])) // the shell may have ended
			case <-ended.Done():
				return
			}
		}
	})
	err = session.Wait()
	if status, ok := errors.AsType[*ssh.ExitError](err); ok {
		return status.ExitStatus(), nil
	}
	return 0, err
}

// MayEnter reports whether a user may enter instances of a process now.
func (p *Proxy) MayEnter(tx *store.Tx, who cf.Identity, processGUID string) (bool, error) {
	e, err := find(tx, login{processGUID: processGUID})
	if store.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	actor, err := access.Actor(tx, who.Actor(), who.Scopes)
	return err == nil && e.refuse(actor) == nil, err
}
