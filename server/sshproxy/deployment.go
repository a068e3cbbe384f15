package sshproxy

import (
	"context"
	"errors"
	"strconv"

	"cupola/runtime/lrp"
	"cupola/server/control/access"
	"cupola/store"
	"cupola/store/cf"
)

// deploymentUser begins the user names of `cupola deployment ssh`:
// bosh:<process-guid>/<index>, with a one-time code as the password.
const deploymentUser = "bosh:"

var (
	errDeploymentLogin = errors.New("the user has to be bosh:<process-guid>/<index>, and the password a code of 'cf ssh-code'")
	errDeployment      = errors.New("there is no such process of a deployment, or you are not authorized to enter it: only admins are")
)

// admitDeployment decides whether a user may enter a process of a BOSH deployment. Only
// admins may: a shell shows the deployment's secrets. The code is used up in any case.
func (p *Proxy) admitDeployment(ctx context.Context, user, code string) (target, error) {
	at, err := parseUser(deploymentUser, user)
	if err != nil {
		return target{}, errDeploymentLogin
	}
	id, bad := p.Redeem(ctx, code)
	if bad != nil {
		return target{}, errCode
	}
	var to target
	var refusal error
	err = p.Store.Write(ctx, func(tx *store.Tx) (err error) {
		to, refusal, err = deploymentTarget(tx, at, id)
		return err
	})
	if err != nil {
		p.Log.ErrorContext(ctx, "ssh login not checked", "process_guid", at.processGUID, "err", err)
		return target{}, errUnentered
	}
	if refusal == nil {
		p.Log.InfoContext(ctx, "ssh into a deployment", "user", printable(id.Username), "process_guid", at.processGUID)
	}
	return to, refusal
}

// deploymentTarget finds the container of a deployment's process, or says why the user
// may not enter it.
func deploymentTarget(tx *store.Tx, at login, id cf.Identity) (to target, refusal, err error) {
	actor, err := access.Actor(tx, id.Actor(), id.Scopes)
	if err != nil {
		return to, nil, err
	}
	if !actor.Admin {
		return to, errDeployment, nil
	}
	actual, err := store.ActualLRPs.First(tx, store.Query{Where: map[string][]string{"process_guids": {at.processGUID}, "indices": {strconv.Itoa(at.index)}}})
	if store.IsNotFound(err) || err == nil && !lrp.OfBOSH(actual.Domain) {
		return to, errDeployment, nil
	}
	if err != nil {
		return to, nil, err
	}
	if actual.State != lrp.Running || actual.InstanceGUID == "" {
		return to, errNotRunning, nil
	}
	i, err := store.BOSHInstances.Get(tx, actual.Owner.GUID)
	if store.IsNotFound(err) {
		return to, errNotRunning, nil // it was deleted just now
	}
	if err != nil {
		return to, nil, err
	}
	if err := recordSSH(tx, id.Username, i); err != nil {
		return to, nil, err
	}
	return deploymentInstance(actor.GUID, actual, i), nil, nil
}

// deploymentInstance is the container of a process of an instance, for a user.
func deploymentInstance(user string, actual *lrp.Actual, i *cf.BOSHInstance) target {
	index := strconv.Itoa(i.Index)
	return target{user: user, instanceGUID: actual.InstanceGUID, config: clientConfig(),
		log: lrp.LogTarget{GUID: i.DeploymentGUID, Source: "SSH", Instance: index, Tags: map[string]string{"job": i.Group, "index": index}}}
}

// recordSSH adds the event that a user enters an instance, in the director's words.
func recordSSH(tx *store.Tx, user string, i *cf.BOSHInstance) error {
	d, err := store.BOSHDeployments.Get(tx, i.DeploymentGUID)
	if err != nil {
		return err
	}
	name := i.Group + "/" + i.GUID
	return store.BOSHEvents.Insert(tx, &cf.BOSHEvent{User: user, Action: "setup ssh", ObjectType: "instance", ObjectName: name, Deployment: d.Name, Instance: name})
}
