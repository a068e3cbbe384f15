package databroker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"cupola/server/osb/builtin"
	"cupola/store"
	"cupola/store/cf"
)

// user is the user of a binding, in letters and digits alone.
func user(bindingGUID string) string {
	sum := sha256.Sum256([]byte(bindingGUID))
	return "u" + hex.EncodeToString(sum[:8])
}

func (b *broker) bind(r *http.Request) (a answer, err error) {
	q, err := decode(r)
	if err != nil {
		return a, err
	}
	if len(q.Parameters) > 0 {
		return a, builtin.Refuse(http.StatusBadRequest, "bindings take no parameters")
	}
	i, n, again, err := b.reserve(r, q)
	if err != nil {
		return a, err
	}
	if n == nil {
		return answer{Status: http.StatusConflict, Body: object{}}, nil
	}
	status := http.StatusCreated
	if again && n.State == cf.DataReady {
		status = http.StatusOK
	} else if err := b.grant(r.Context(), i, n); err != nil {
		return a, err
	}
	return answer{Status: status, Body: b.bound(i, n)}, nil
}

// reserve writes down the binding that is asked for, or finds it; nil where
// there is another one of its GUID.
func (b *broker) reserve(r *http.Request, q request) (i *cf.DataInstance, n *cf.DataBinding, again bool, err error) {
	err = b.Store.Write(r.Context(), func(tx *store.Tx) error {
		i, err = store.DataInstances.Find(tx, r.PathValue("instance"))
		if err != nil {
			return err
		}
		if i == nil {
			return builtin.Refuse(http.StatusNotFound, "there is no such instance")
		}
		if s, p, _ := known(i); q.ServiceID != s.id() || q.PlanID != s.planID(p) {
			return builtin.Refuse(http.StatusBadRequest, "the instance is of another service or plan")
		}
		if s, _, _ := known(i); s.engine == nil && q.app() == "" {
			return errNoApp
		}
		if i.State != cf.DataReady {
			return errBusy
		}
		if n, err = store.DataBindings.Find(tx, r.PathValue("binding")); err != nil {
			return err
		}
		if n == nil {
			n = &cf.DataBinding{Resource: cf.Resource{GUID: r.PathValue("binding")}, InstanceGUID: i.GUID, AppGUID: q.app(), Request: builtin.Text(q), Password: rand.Text(), State: cf.DataMaking}
			return store.DataBindings.Insert(tx, n)
		}
		if n.State == cf.DataDeleting {
			return errBusy
		}
		again = true
		if n.InstanceGUID != i.GUID || n.Request != builtin.Text(q) {
			n = nil
		}
		return nil
	})
	return i, n, again, err
}

func (q request) app() string {
	if q.BindResource != nil && q.BindResource.AppGUID != "" {
		return q.BindResource.AppGUID
	}
	return q.AppGUID
}

// grant makes the user of a binding. It reads the instance again.
func (b *broker) grant(ctx context.Context, i *cf.DataInstance, n *cf.DataBinding) error {
	release, err := b.turn(ctx, i.GUID)
	if err != nil {
		return err
	}
	defer release()
	now, err := b.ready(ctx, i.GUID) // it may have been changed meanwhile
	if errors.Is(err, errNotRunning) {
		return errBusy
	}
	if err != nil {
		return err
	}
	*i = *now
	if s, _, _ := known(i); s.engine != nil {
		if err := b.insist(ctx, i, s.engine.grant(user(n.GUID), n.Password)); err != nil {
			return err
		}
	}
	n.TLS = i.TLSRequired || b.certified(i.GUID)
	return b.Store.Write(ctx, func(tx *store.Tx) error {
		now, err := store.DataBindings.Get(tx, n.GUID)
		if err != nil {
			return err
		}
		if now.State == cf.DataDeleting {
			return errBusy
		}
		now.State, now.TLS = cf.DataReady, n.TLS
		return store.DataBindings.Update(tx, now)
	})
}

func (b *broker) bound(i *cf.DataInstance, n *cf.DataBinding) object {
	s, _, _ := known(i)
	if s.engine == nil {
		return mounted(i)
	}
	return object{"credentials": s.credentials(i, n, b.Trust)}
}

// binding reads what the request names; nil where there is none.
func (b *broker) binding(r *http.Request) (i *cf.DataInstance, n *cf.DataBinding, err error) {
	err = b.Store.Read(r.Context(), func(tx *store.Tx) error {
		if i, err = store.DataInstances.Find(tx, r.PathValue("instance")); err != nil || i == nil {
			return err
		}
		n, err = store.DataBindings.Find(tx, r.PathValue("binding"))
		if n != nil && n.InstanceGUID != i.GUID {
			n = nil
		}
		return err
	})
	return i, n, err
}

func (b *broker) fetchBinding(r *http.Request) (a answer, err error) {
	i, n, err := b.binding(r)
	if err != nil {
		return a, err
	}
	if n == nil || n.State != cf.DataReady {
		return a, builtin.Refuse(http.StatusNotFound, "there is no such binding")
	}
	return answer{Status: http.StatusOK, Body: b.bound(i, n)}, nil
}

func (b *broker) lastBindingOperation(r *http.Request) (a answer, err error) {
	_, n, err := b.binding(r)
	switch {
	case err != nil:
		return a, err
	case n == nil:
		return gone(), nil
	case n.State == cf.DataReady:
		return answer{Status: http.StatusOK, Body: object{"state": "succeeded"}}, nil
	}
	return answer{Status: http.StatusOK, Body: object{"state": "in progress"}}, nil
}

// unbind cuts the app's way before it takes the user away; a database that is
// not there is no reason to keep it, if it is to go itself.
func (b *broker) unbind(r *http.Request) (a answer, err error) {
	q := r.URL.Query()
	if q.Get("service_id") == "" || q.Get("plan_id") == "" {
		return a, builtin.Refuse(http.StatusBadRequest, "service_id and plan_id are required")
	}
	i, n, err := b.binding(r)
	if err != nil {
		return a, err
	}
	if n == nil {
		return gone(), nil
	}
	err = b.Store.Write(r.Context(), func(tx *store.Tx) error {
		n.State = cf.DataDeleting
		return store.DataBindings.Update(tx, n)
	})
	if err != nil {
		return a, err
	}
	if err := b.revoke(r.Context(), i, n); err != nil {
		return a, err
	}
	return answer{Status: http.StatusOK, Body: object{}}, nil
}

func (b *broker) revoke(ctx context.Context, i *cf.DataInstance, n *cf.DataBinding) error {
	release, err := b.turn(ctx, i.GUID)
	if err != nil {
		return err
	}
	defer release()
	if i.Upgrade != cf.UpgradeNone {
		return errBusy
	}
	if s, _, _ := known(i); s.engine != nil && i.State == cf.DataReady {
		if err := b.insist(ctx, i, s.engine.revoke(user(n.GUID))); err != nil {
			return err
		}
	}
	return b.Store.Write(ctx, func(tx *store.Tx) error { return store.DataBindings.Delete(tx, n.GUID) })
}
