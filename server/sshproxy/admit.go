package sshproxy

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/lrp"
	"cupola/server/authz"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// target is the instance that a connection was let into.
type target struct {
	user         string // GUID of who was
	instanceGUID string
	log          lrp.LogTarget
	address      string                   // of the sshd that the instance has; "": one is started
	config       *ssh.ClientConfig        // for that sshd
	command      func(line string) string // changes the commands that the user runs; nil does not
}

// Why a user is not let in. A user who may not see an app does not learn that it is
// there.
var (
	errCode       = errors.New("the one-time code is wrong, was used or has expired: get another with 'cf ssh-code'")
	errApp        = errors.New("there is no such process, or you are not authorized to enter it")
	errUnentered  = errors.New("ssh cannot be had just now: the daemon's log says why")
	errAppSSH     = errors.New("ssh is disabled for app")
	errSuspended  = errors.New("the organization is suspended")
	errMany       = errors.New("too many ssh sessions of yours are open: close some of them")
	errNotRunning = errors.New("the instance is not running")
)

// unknownActor is the actor of an audit event whose user is not known: Cloud
// Controller's.
var unknownActor = cf.Actor{GUID: "unknown-user-guid", Type: "user", Name: "unknown-user-email"}

// admit decides whether who shows the code may enter, and writes the audit
// event. The code is used up in any case.
func (p *Proxy) admit(ctx context.Context, user, code string) (target, error) {
	at, err := parseLogin(user)
	if err != nil {
		return target{}, err
	}
	id, bad := p.Redeem(ctx, code)
	if bad != nil {
		p.auditStranger(ctx, at)
		return target{}, errCode
	}
	return p.admitKnown(ctx, at, id)
}

// admitKnown is admit for a user who is known.
func (p *Proxy) admitKnown(ctx context.Context, at login, id cf.Identity) (target, error) {
	to, refusal := p.admitOnce(ctx, at, id)
	if refusal == errNotRunning && to.log.GUID != "" {
		return p.admitAsleep(ctx, at, to)
	}
	return to, refusal
}

// admitAsleep is admitKnown for one who may enter an app whose instance is not there: it may
// sleep.
func (p *Proxy) admitAsleep(ctx context.Context, at login, to target) (target, error) {
	release, err := p.hold(ctx, to.log.GUID)
	if err != nil {
		return target{}, errNotRunning
	}
	defer release()
	user := to.user
	err = p.Store.Read(ctx, func(tx *store.Tx) error {
		e, err := find(tx, at)
		if err != nil {
			return err
		}
		to, err = e.instance(tx, at)
		return err
	})
	if err != nil {
		return target{}, errNotRunning
	}
	to.user = user
	return to, nil
}

// admitOnce checks whether a user may enter, and finds the instance. If there is none it
// returns whose app it is.
func (p *Proxy) admitOnce(ctx context.Context, at login, id cf.Identity) (target, error) {
	var to target
	var refusal error
	err := p.Store.Write(ctx, func(tx *store.Tx) error {
		e, err := find(tx, at)
		if store.IsNotFound(err) {
			refusal = errApp
			return nil
		}
		if err != nil {
			return err
		}
		actor, err := access.Actor(tx, id.Actor(), id.Scopes)
		if err != nil {
			return err
		}
		kind := audit.AppSSHAuthorized
		if refusal = e.refuse(actor); refusal != nil {
			kind = audit.AppSSHUnauthorized
		}
		if err := e.audit(tx, kind, access.Who(actor), at); err != nil {
			return err
		}
		if refusal == nil {
			if to, refusal = e.instance(tx, at); refusal != nil {
				to.log.GUID = e.app.GUID
			}
			to.user = actor.GUID
		}
		return nil
	})
	if err != nil {
		p.Log.ErrorContext(ctx, "ssh login not checked", "process_guid", at.processGUID, "err", err)
		return target{}, errUnentered
	}
	return to, refusal
}

// strangersLimit is how many wrong codes a minute are written into the audit
// events, so that a stranger cannot fill the disk.
const strangersLimit = 30

// auditStranger writes down that a wrong code was shown.
func (p *Proxy) auditStranger(ctx context.Context, at login) {
	if !p.strangers.allow() {
		return
	}
	err := p.Store.Write(ctx, func(tx *store.Tx) error {
		e, err := find(tx, at)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return e.audit(tx, audit.AppSSHUnauthorized, unknownActor, at)
	})
	if err != nil {
		p.Log.ErrorContext(ctx, "ssh login not audited", "process_guid", at.processGUID, "err", err)
	}
}

// entrance is a process with all that decides who may enter it.
type entrance struct {
	process *cf.Process
	app     *cf.App
	space   *cf.Space
	org     *cf.Org
}

func find(tx *store.Tx, at login) (e entrance, err error) {
	if e.process, err = store.Processes.Get(tx, at.processGUID); err != nil {
		return e, err
	}
	if e.app, err = store.Apps.Get(tx, e.process.AppGUID); err != nil {
		return e, err
	}
	if e.space, err = store.Spaces.Get(tx, e.app.SpaceGUID); err != nil {
		return e, err
	}
	e.org, err = store.Orgs.Get(tx, e.space.OrgGUID)
	return e, err
}

// refuse says why the actor may not enter, by Cloud Controller's rules: he has
// to be able to change the process, and ssh to be on for app and space.
func (e entrance) refuse(actor *authz.Actor) error {
	place := authz.Place{OrgGUID: e.org.GUID, SpaceGUID: e.space.GUID}
	switch {
	case !actor.MayWrite() || !actor.May(authz.SpaceDeveloper, place):
		return errApp
	case e.org.Suspended && !actor.Admin:
		return errSuspended
	case !e.space.AllowSSH:
		return fmt.Errorf("ssh is disabled for space '%s'", e.space.Name)
	case !e.app.SSHEnabled:
		return errAppSSH
	}
	return nil
}

func (e entrance) audit(tx *store.Tx, what audit.Type, actor cf.Actor, at login) error {
	return audit.App(tx, actor, what, e.app, audit.Data{"index": strconv.Itoa(at.index)})
}

// instance finds the container.
func (e entrance) instance(tx *store.Tx, at login) (target, error) {
	name := desire.ProcessGUID(e.process, e.app)
	actual, err := store.ActualLRPs.First(tx, store.Query{Where: map[string][]string{
		"process_guids": {name}, "indices": {strconv.Itoa(at.index)}, "states": {string(lrp.Running)}}})
	if err != nil || actual.InstanceGUID == "" {
		return target{}, errNotRunning
	}
	return e.target(actual), nil
}

// target is an instance of the process, in which an sshd is started.
func (e entrance) target(actual *lrp.Actual) target {
	tags := map[string]string{"app_id": e.app.GUID, "app_name": e.app.Name, "process_id": e.process.GUID, "process_type": e.process.Type,
		"space_id": e.space.GUID, "space_name": e.space.Name, "organization_id": e.org.GUID, "organization_name": e.org.Name}
	return target{instanceGUID: actual.InstanceGUID, config: clientConfig(),
		log: lrp.LogTarget{GUID: e.app.GUID, Source: "SSH", Instance: strconv.Itoa(actual.Index), Tags: tags}}
}
