package databroker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"cupola/server/osb/builtin"
	"cupola/store"
	"cupola/store/cf"
)

// pullTime bounds the pull of an image.
const pullTime = 15 * time.Minute

// upgrade begins to give an instance of a service file what the file says now.
func (b *broker) upgrade(r *http.Request, i *cf.DataInstance, q request) (a answer, err error) {
	now, p, _ := known(i)
	s, _, ok := b.find(now.id(), now.planID(p))
	if !ok {
		return a, builtin.Refuse(http.StatusUnprocessableEntity, "there is no file of %s any longer that has the plan %s", i.Service, i.Plan)
	}
	if err := errors.Join(acceptsAsync(r), s.checkVersion(q)); err != nil {
		return a, err
	}
	if now.version == s.version && i.Fault == "" {
		return answer{Status: http.StatusOK, Body: object{}}, nil
	}
	err = b.Store.Write(r.Context(), func(tx *store.Tx) error {
		now, err := idle(tx, i.GUID)
		if err != nil {
			return err
		}
		now.State, now.Fault, now.Upgrade, now.Next = cf.DataMaking, "", cf.UpgradePulling, s.definition()
		return store.DataInstances.Update(tx, now)
	})
	return answer{Status: http.StatusAccepted, Body: object{"operation": "update"}}, err
}

// idle reads an instance whose container may stop; errBusy while it is changed or backed up.
func idle(tx *store.Tx, instanceGUID string) (*cf.DataInstance, error) {
	i, err := store.DataInstances.Get(tx, instanceGUID)
	if err != nil {
		return nil, err
	}
	backups, err := store.DataBackups.Count(tx, store.Query{Where: map[string][]string{"service_instance_guids": {instanceGUID}, "states": {cf.BackupProcessing}}})
	if err == nil && (i.State != cf.DataReady || backups > 0) {
		err = errBusy
	}
	return i, err
}

// upgradesTo is the version that the upgrade under way gives an instance.
func upgradesTo(i *cf.DataInstance) string {
	of := *i
	if i.Next != "" {
		of.Definition = i.Next
	}
	s, _, _ := known(&of)
	return s.version
}

// moveUpgrade moves an upgrade on by one step. The old container runs until the new image is here; one that does not start
// is tried again, as one that crashed.
func (k *keeper) moveUpgrade(ctx context.Context, i *cf.DataInstance) error {
	switch i.Upgrade {
	case cf.UpgradePulling:
		next, err := k.pull(ctx, i.Next)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return k.endUpgrade(ctx, i, err.Error())
		}
		return k.change(ctx, i, func(now *cf.DataInstance) { now.Next, now.Upgrade = next, cf.UpgradeStopping })
	case cf.UpgradeStopping:
		gone, err := k.stopped(ctx, i)
		if err != nil || !gone {
			return err
		}
		next := *i
		next.Definition = i.Next
		s, p, _ := known(&next)
		if err := k.createVolume(i, s, p); err != nil {
			return errors.Join(err, k.endUpgrade(ctx, i, "there is no room for its volume"))
		}
		return k.change(ctx, i, func(now *cf.DataInstance) { now.Definition, now.Next, now.Upgrade = now.Next, "", cf.UpgradeStarting })
	}
	s, _, _ := known(i)
	err := k.execute(ctx, i, s.engine.setUp())
	switch {
	case err == nil:
		return k.endUpgrade(ctx, i, "")
	case time.Since(i.UpdatedAt) > makeTime:
		return k.endUpgrade(ctx, i, k.why(ctx, i, err))
	}
	return err
}

func (k *keeper) endUpgrade(ctx context.Context, i *cf.DataInstance, fault string) error {
	return k.change(ctx, i, func(now *cf.DataInstance) {
		now.State, now.Fault, now.Upgrade, now.Next = cf.DataReady, fault, cf.UpgradeNone, ""
	})
}

// pullFirst pulls the image of a new instance of a service file.
func (k *keeper) pullFirst(ctx context.Context, i *cf.DataInstance) error {
	if i.Definition == "" {
		return nil
	}
	text, err := k.pull(ctx, i.Definition)
	if err != nil || text == i.Definition {
		return err
	}
	return k.change(ctx, i, func(now *cf.DataInstance) { now.Definition = text })
}

// pull pulls the image of a definition, which names it by its digest then, so that containers start with the
// same one as long as the instance is not upgraded.
func (b *broker) pull(ctx context.Context, text string) (string, error) {
	var d definition
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return "", err
	}
	if d.Image.Reference != "" || d.File.IsStack() {
		return text, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pullTime, fmt.Errorf("it took longer than %s", pullTime))
	defer cancel()
	var as cf.Credential
	if r := d.File.Registry; r != nil {
		as = cf.Credential{Username: r.Username, Password: r.Password}
	}
	var err error
	if d.Image, err = b.Pull(ctx, d.File.Image, as); err != nil {
		return "", err
	}
	if argv := d.argv(); len(argv) == 0 || slices.Contains(argv[:1], "") {
		return "", fmt.Errorf("the image %s says no command, nor does the service's file", d.Image.Reference)
	}
	return d.text(), nil
}
