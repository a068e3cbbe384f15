package databroker

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"cupola/runtime/pattern"
	"cupola/server/osb/builtin"
	"cupola/store"
	"cupola/store/cf"
)

// guidRule is what the platform's GUIDs are made of: they become names of
// volumes and hosts.
var guidRule = pattern.Lazy(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,59}$`)

func (b *broker) provision(r *http.Request) (a answer, err error) {
	if a, err = b.provide(r); a.Status < http.StatusMultipleChoices && err == nil {
		b.nameDashboard(a, r.PathValue("instance"))
	}
	return a, err
}

// provide makes an instance, or finds the one that was made.
func (b *broker) provide(r *http.Request) (a answer, err error) {
	guid := r.PathValue("instance")
	q, err := decode(r)
	if err != nil {
		return a, err
	}
	s, p, ok := b.find(q.ServiceID, q.PlanID)
	switch {
	case !ok:
		return a, builtin.Refuse(http.StatusBadRequest, "the catalog has no service %q with a plan %q", q.ServiceID, q.PlanID)
	case !guidRule().MatchString(guid):
		return a, builtin.Refuse(http.StatusBadRequest, "the instance's ID is not a GUID")
	case !b.HasFile.has(s):
		return a, builtin.Refuse(http.StatusBadRequest, "%s is not prepared: an operator adds it to the stack %q with '%s'", s.name, s.software.stackName(), PrepareCommand(s.name))
	}
	if err := errors.Join(acceptsAsync(r), s.checkVersion(q)); err != nil {
		return a, err
	}
	want, err := s.parametersOf(q)
	if err != nil {
		return a, err
	}
	if old, err := b.instance(r); err != nil || old == nil {
		if err := errors.Join(err, b.checkSource(r.Context(), s, p, q, want), b.takeContent(guid, want)); err != nil {
			return a, err
		}
	}
	err = b.Store.Write(r.Context(), func(tx *store.Tx) error {
		old, err := store.DataInstances.Find(tx, guid)
		if err != nil {
			return err
		}
		if old != nil {
			a, err = provisioned(old, q)
			return err
		}
		of, err := store.DataInstances.Find(tx, want.Of)
		if err != nil {
			return err
		}
		a = answer{Status: http.StatusAccepted, Body: object{"operation": "provision"}}
		return store.DataInstances.Insert(tx, &cf.DataInstance{Resource: cf.Resource{GUID: guid}, Service: s.name, Plan: p.name, Request: builtin.Text(q), Secret: rand.Text(), State: cf.DataNew, Definition: s.definition(),
			TLSRequired: want.requiresTLS(of)})
	})
	return a, err
}

// provisioned answers who asks again for an instance.
func provisioned(i *cf.DataInstance, q request) (answer, error) {
	switch {
	case i.State == cf.DataDeleting:
		return answer{}, errBusy
	case i.Request != builtin.Text(q) || i.State == cf.DataFailed:
		return answer{Status: http.StatusConflict, Body: object{}}, nil
	case i.State == cf.DataReady:
		return answer{Status: http.StatusOK, Body: object{}}, nil
	}
	return answer{Status: http.StatusAccepted, Body: object{"operation": "provision"}}, nil
}

// update enables or disables point-in-time recovery, changes whether TLS is required, or upgrades an instance of a service file. No
// offering says that its plans can be changed.
func (b *broker) update(r *http.Request) (a answer, err error) {
	q, err := decode(r)
	if err != nil {
		return a, err
	}
	i, err := b.instance(r)
	switch {
	case err != nil:
		return a, err
	case i == nil:
		return a, builtin.Refuse(http.StatusNotFound, "there is no such instance")
	case i.Upgrade != cf.UpgradeNone && q.Maintenance != nil && upgradesTo(i) == q.Maintenance.Version:
		return answer{Status: http.StatusAccepted, Body: object{"operation": "update"}}, nil // it is asked again
	case i.State != cf.DataReady:
		return a, errBusy
	}
	s, _, _ := known(i)
	s.name = i.Service // also of a service that this cupola does not have any longer
	if q.PlanID != "" && q.PlanID != s.planID(plan{name: i.Plan}) {
		return a, builtin.Refuse(http.StatusUnprocessableEntity, "an instance keeps its plan")
	}
	if i.Definition != "" && q.Maintenance != nil && len(q.Parameters) == 0 {
		return b.upgrade(r, i, q)
	}
	want, err := s.parametersOf(q)
	switch {
	case err != nil:
		return a, err
	case want.restored():
		return a, builtin.Refuse(http.StatusBadRequest, "invalid restore_from_point_in_time_of or restore_from_content: only a new instance can be restored so")
	case want.TLS != "" && want.Recovery != nil:
		return a, builtin.Refuse(http.StatusBadRequest, "change tls and point_in_time_recovery one after the other")
	case want.TLS != "" && (want.TLS != TLSOf(i) || s.serverNames(i) != nil && !b.certified(i.GUID)):
		return b.changeTLS(r, i, want.TLS)
	case want.Recovery != nil:
		err = b.changeRecovery(r.Context(), i, *want.Recovery)
	}
	return answer{Status: http.StatusOK, Body: object{}}, err
}

// changeRecovery waits until nothing else changes the instance, and then runs setRecovery.
func (b *broker) changeRecovery(ctx context.Context, i *cf.DataInstance, enabled bool) error {
	release, err := b.turn(ctx, i.GUID)
	if err != nil {
		return err
	}
	defer release()
	if err := b.setRecovery(ctx, i, enabled); err != nil {
		return builtin.Refuse(http.StatusUnprocessableEntity, "point_in_time_recovery could not be changed: %v", err)
	}
	return nil
}

// instance reads the instance that the request names; nil where there is none.
func (b *broker) instance(r *http.Request) (i *cf.DataInstance, err error) {
	err = b.Store.Read(r.Context(), func(tx *store.Tx) error {
		i, err = store.DataInstances.Find(tx, r.PathValue("instance"))
		return err
	})
	return i, err
}

func (b *broker) fetch(r *http.Request) (a answer, err error) {
	i, err := b.instance(r)
	if err != nil {
		return a, err
	}
	if i == nil || i.State != cf.DataReady {
		return a, builtin.Refuse(http.StatusNotFound, "there is no such instance")
	}
	s, p, _ := known(i)
	o := object{"service_id": s.id(), "plan_id": s.planID(p)}
	if tls := TLSOf(i); tls != "" {
		o["parameters"] = object{TLSParameter: tls}
	}
	a = answer{Status: http.StatusOK, Body: o}
	b.nameDashboard(a, i.GUID)
	return a, nil
}

// deprovision takes an instance in whatever state it is: who made half of it
// wants it gone.
func (b *broker) deprovision(r *http.Request) (a answer, err error) {
	q := r.URL.Query()
	if q.Get("service_id") == "" || q.Get("plan_id") == "" {
		return a, builtin.Refuse(http.StatusBadRequest, "service_id and plan_id are required")
	}
	a = gone()
	err = b.Store.Write(r.Context(), func(tx *store.Tx) error {
		i, err := store.DataInstances.Find(tx, r.PathValue("instance"))
		if err != nil || i == nil {
			return err
		}
		if err := acceptsAsync(r); err != nil {
			return err
		}
		a = answer{Status: http.StatusAccepted, Body: object{"operation": "deprovision"}}
		i.State = cf.DataDeleting
		return store.DataInstances.Update(tx, i)
	})
	return a, err
}

// pollTime is how long a poll is held while there is no news, so that what is
// done in seconds is known at once.
const pollTime = 20 * time.Second

func (b *broker) lastOperation(r *http.Request) (a answer, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), pollTime)
	defer cancel()
	err = b.Store.Until(ctx, func(tx *store.Tx) (done bool, err error) {
		i, err := store.DataInstances.Find(tx, r.PathValue("instance"))
		a = operation(i)
		return a.Body["state"] != "in progress", err
	})
	return a, err
}

func operation(i *cf.DataInstance) answer {
	switch {
	case i == nil:
		return gone()
	case i.State == cf.DataReady && i.Fault == "":
		return answer{Status: http.StatusOK, Body: object{"state": "succeeded"}}
	case i.State == cf.DataReady || i.State == cf.DataFailed:
		return answer{Status: http.StatusOK, Body: object{"state": "failed", "description": i.Fault}}
	}
	return answer{Status: http.StatusOK, Body: object{"state": "in progress"}}
}
